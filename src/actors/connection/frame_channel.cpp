#include "actors/connection/frame_channel.hpp"

#include "protocol/frame_builder.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace terrace {

namespace {
constexpr size_t joined_bytes_max =
    64 << 10; ///< small answers that are ready together are sent in one system call
constexpr size_t idle_builders_max = 8;
constexpr size_t quiet_bytes_max = 16 << 10; ///< of answers that count as sent when they are submitted

protocol::frame_decoder::options decoding(const teardown_ptr& teardown) {
  protocol::frame_decoder::options with;
  if (teardown)
    with.dispose = [teardown](uint64_t* buffer) { teardown->run([buffer] { delete[] buffer; }); };
  return with;
}
} // namespace

frame_channel::frame_channel(unique_fd socket, runtime::io_port& port, caf::strong_actor_ptr owner,
                             const teardown_ptr& teardown)
    : port_(port), owner_(std::move(owner)),
      // With them end descriptors that were received and not used.
      socket_(new unique_fd(std::move(socket)), deleted_by{teardown}),
      in_(new incoming{.decoder = protocol::frame_decoder(decoding(teardown))}, deleted_by{teardown}),
      out_(std::make_shared<outgoing>()) {
  in_->socket = socket_;
  out_->socket = socket_;
}

frame_channel::~frame_channel() { shut(); }

void frame_channel::shut() {
  ::shutdown(socket_->get(), SHUT_RDWR);
  line_.clear();
  builders_.clear();
}

void frame_channel::keep_while_sending(keep_alive kept) {
  if (out_->armed)
    out_->kept = std::move(kept);
}

void frame_channel::receive() {
  if (in_->armed)
    return;
  in_->armed = true;
  runtime::io_request request;
  request.code = runtime::io_code::recvmsg;
  request.fd = socket_->get();
  request.message = in_->message.prepare(in_->decoder.write_area());
  request.flags = protocol::receive_flags;
  request.keep_alive = in_;
  port_.submit(std::move(request), owner_, io_tag::receive);
}

result<bool> frame_channel::received(int32_t result) {
  assert(in_->armed);
  in_->armed = false;
  if (result < 0)
    return false;
  received_bytes += static_cast<uint64_t>(result);
  auto descriptors = in_->message.take();
  if (auto ok =
          in_->decoder.commit(static_cast<size_t>(result), std::move(descriptors), in_->message.truncated());
      !ok)
    return tl::unexpected(ok.error());
  return result != 0;
}

void frame_channel::watch_hang_up() {
  if (watching_)
    return;
  watching_ = true;
  runtime::io_request request;
  request.code = runtime::io_code::poll;
  request.fd = socket_->get();
  request.events = POLLRDHUP; // hang-ups and errors are always reported
  request.keep_alive = socket_;
  port_.submit(std::move(request), owner_, io_tag::hang_up);
}

bool frame_channel::hung_up(int32_t result) {
  assert(watching_);
  watching_ = false;
  return result > 0;
}

std::unique_ptr<protocol::frame_builder> frame_channel::builder() {
  if (!out_->armed && !out_->quiet.in_flight)
    reclaim_sent(); // of what was sent quietly
  if (builders_.empty())
    return std::make_unique<protocol::frame_builder>();
  auto idle = std::move(builders_.back());
  builders_.pop_back();
  return idle;
}

void frame_channel::send(outgoing_frame frame, bool later) {
  assert(frame.builder->bytes().size() <= protocol::frame_bytes_max);
  line_.push_back(std::move(frame));
  if (!later && !out_->armed)
    send_more();
}

void frame_channel::send_line(std::vector<uint64_t>& done, bool last) {
  outgoing& out = *out_;
  if (!waits())
    return;
  if (out.quiet.in_flight) {
    announce();
    return;
  }
  auto descriptors = join_line();
  if (last || !may_be_quiet()) {
    submit_send(descriptors);
    return;
  }
  for (const outgoing_frame& frame : out.frames)
    done.push_back(frame.request);
  out.counted = true;
  sent_bytes += out.left.size();
  out.quiet = {.in_flight = true};
  runtime::io_request request;
  request.code = runtime::io_code::send;
  request.fd = socket_->get();
  request.data = const_cast<uint8_t*>(out.left.data());
  request.length = static_cast<uint32_t>(out.left.size());
  request.flags = protocol::send_flags;
  request.quiet = &out.quiet;
  request.keep_alive = out_;
  port_.submit(std::move(request), owner_, io_tag::send);
}

/// Few bytes of answers alone: what is sent outside any request ends the connection, which has to know that it was sent.
bool frame_channel::may_be_quiet() const {
  return out_->left.size() <= quiet_bytes_max &&
         std::none_of(out_->frames.begin(), out_->frames.end(), [](const outgoing_frame& frame) {
           return frame.request == 0 || !frame.descriptors.empty();
         });
}

/// What is being sent quietly is to complete: more follows.
void frame_channel::announce() {
  out_->quiet.announced = true;
  out_->armed = true;
}

void frame_channel::send_more() {
  if (out_->quiet.in_flight)
    announce();
  else if (!line_.empty())
    submit_send(join_line());
}

/// The next frames to be sent become `out_->left`. Returns the descriptors that go with them. Precondition: there is one.
std::vector<int> frame_channel::join_line() {
  outgoing& out = *out_;
  reclaim_sent();
  out.counted = false;
  out.joined.clear();
  // Descriptors are attached to the first byte of a message, so a frame with descriptors must be the first of
  // one.
  size_t bytes = 0;
  do {
    bytes += line_.front().builder->bytes().size();
    out.frames.push_back(std::move(line_.front()));
    line_.pop_front();
  } while (!line_.empty() && line_.front().descriptors.empty() &&
           bytes + line_.front().builder->bytes().size() <= joined_bytes_max);
  if (out.frames.size() == 1) {
    out.left = out.frames.front().builder->bytes();
  } else {
    for (const outgoing_frame& frame : out.frames)
      out.joined.insert(out.joined.end(), frame.builder->bytes().begin(), frame.builder->bytes().end());
    out.left = out.joined;
  }
  std::vector<int> descriptors;
  for (const unique_fd& fd : out.frames.front().descriptors)
    descriptors.push_back(fd.get());
  return descriptors;
}

/// The frames are sent.
void frame_channel::reclaim_sent() {
  for (outgoing_frame& frame : out_->frames) {
    frame.builder->shrink();
    if (builders_.size() < idle_builders_max)
      builders_.push_back(std::move(frame.builder));
  }
  out_->frames.clear();
}

void frame_channel::submit_send(std::span<const int> descriptors) {
  out_->armed = true;
  runtime::io_request request;
  request.code = runtime::io_code::sendmsg;
  request.fd = socket_->get();
  request.message = out_->message.prepare(out_->left, descriptors);
  request.flags = protocol::send_flags;
  request.keep_alive = out_;
  port_.submit(std::move(request), owner_, io_tag::send);
}

bool frame_channel::sent(int32_t result, std::vector<uint64_t>& done) {
  outgoing& out = *out_;
  assert(out.armed || out.quiet.in_flight);
  out.armed = false;
  out.quiet = {};
  if (result == -EINTR || result == -EAGAIN)
    result = 0;
  else if (result <= 0) {
    out.frames.clear();
    out.kept.reset();
    return false;
  }
  if (!out.counted)
    sent_bytes += static_cast<uint64_t>(result);
  out.left = out.left.subspan(static_cast<size_t>(result));
  if (!out.left.empty()) {
    submit_send({}); // the descriptors were sent with the first byte
    return true;
  }
  if (!out.counted)
    for (const outgoing_frame& frame : out.frames)
      done.push_back(frame.request);
  reclaim_sent();
  out.kept.reset();
  return true;
}

} // namespace terrace

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 // Linux 6.5
#endif

namespace terrace {

std::optional<peer> identify_peer(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return std::nullopt;
  peer who;
  who.pid = credentials.pid;
  who.uid = credentials.uid;
  who.gid = credentials.gid;
  int pidfd = -1;
  length = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) != 0)
    pidfd = static_cast<int>(::syscall(SYS_pidfd_open, credentials.pid, 0));
  if (pidfd < 0)
    return std::nullopt; // it has already ended
  who.pidfd = std::make_shared<unique_fd>(pidfd);
  return who;
}

void turn_away(const unique_fd& socket, const error& why) {
  protocol::frame_builder frame;
  protocol::write_error(frame, 0, why);
  (void) !::send(socket.get(), frame.bytes().data(), frame.bytes().size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace terrace
