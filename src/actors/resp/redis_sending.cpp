// Sends replies to the client.
#include "actors/resp/redis_connection.hpp"

#include <algorithm>

namespace terrace::actors {

namespace {

/// Limit for replies that count as sent when they are submitted.
constexpr uint64_t quiet_bytes_max = 16 << 10;

} // namespace

void redis_connection::send() {
  if (sending_ || guessed_ || replies_.empty())
    return;
  if (out_->quiet.in_flight) { // its completion is reported, and these follow it
    out_->quiet.announced = sending_ = true;
    return;
  }
  out_->part = replies_.begin();
  out_->counted = false;
  if (may_be_quiet())
    send_quietly();
  else
    send_part();
}

/// Returns whether to send quietly: a few small replies, unless they are the last ones, whose end has to be
/// known.
bool redis_connection::may_be_quiet() const {
  return out_->part.areas.size() == 1 && out_->part.bytes <= quiet_bytes_max && !ends_ && !eof_ && !drains_;
}

/// Sends replies that count as sent at once: the end is reported only if the socket does not take all of
/// them.
void redis_connection::send_quietly() {
  outgoing& out = *out_;
  replies_.sent(out.part.bytes);
  environment_.client_probe->sent(out.part.bytes);
  out.counted = true;
  out.quiet = {.in_flight = true};
  runtime::io_request request;
  request.code = runtime::io_code::send;
  request.fd = out.socket->get();
  request.data = out.part.areas.front().iov_base;
  request.length = static_cast<uint32_t>(out.part.areas.front().iov_len);
  request.flags = MSG_NOSIGNAL;
  request.quiet = &out.quiet;
  request.keep_alive = out_;
  self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_), io_tag::send);
}

void redis_connection::send_part() {
  sending_ = true;
  out_->message = {};
  out_->message.msg_iov = out_->part.areas.data();
  out_->message.msg_iovlen = out_->part.areas.size();
  runtime::io_request request;
  request.code = runtime::io_code::sendmsg;
  request.fd = out_->socket->get();
  request.message = &out_->message;
  request.flags = MSG_NOSIGNAL | MSG_WAITALL;
  request.keep_alive = out_;
  self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_), io_tag::send);
  await_by(for_sending, environment_.now() + environment_.limits.request_deadline);
}

void redis_connection::on_sent(int32_t bytes) {
  sending_ = false;
  out_->quiet = {};
  due_[for_sending] = clock::time_point::max();
  if (bytes <= 0 && bytes != -EINTR && bytes != -EAGAIN) {
    self_->quit();
    return;
  }
  auto count = static_cast<uint64_t>(std::max(bytes, 0));
  if (out_->counted) {
    iovec& rest = out_->part.areas.front();
    rest = {static_cast<char*>(rest.iov_base) + count, rest.iov_len - count};
    if (rest.iov_len != 0)
      return send_part();
  } else {
    environment_.client_probe->sent(count);
    replies_.sent(count);
  }
  out_->part = {};
  send();
  if (room_came_ && replies_.has_room()) {
    auto came = std::move(room_came_);
    came->set();
  }
  pump();
}

} // namespace terrace::actors
