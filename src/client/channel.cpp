#include "client/channel.hpp"

#include "client/socket.hpp"
#include "protocol/verify.hpp"

#include <cerrno>
#include <cstring>

#include <poll.h>

namespace terrace::client::detail {

using protocol::kind;

namespace {
bool copies_payloads(kind what) { return what == kind::load || what == kind::store; }
} // namespace

channel::channel(unique_fd socket, std::chrono::nanoseconds busy_poll)
    : socket_(std::move(socket)), decoder_({.accepts = protocol::direction::answers}),
      polling_(busy_poll.count()) {}

result<void> channel::state() const {
  if (gone_)
    return tl::unexpected<error>(*gone_);
  return {};
}

void channel::lose(std::string reason) {
  if (gone_)
    return;
  gone_ = error{errc::gone, std::move(reason)};
  outbox_.clear();
  // Not closed: epoll forgets a descriptor that is closed, and an event loop that waits for it would wait on.
  ::shutdown(socket_.get(), SHUT_RDWR);
}

void channel::end(std::string reason) {
  if (!gone_)
    gone_ = error{errc::gone, std::move(reason)};
  outbox_.clear();
  socket_.reset(); // not shut down: a process that was forked may end its copy
}

void channel::set_credits(uint32_t requests, uint64_t bytes, uint64_t frame_bytes_max) {
  credit_requests_ = requests;
  credit_bytes_ = bytes;
  frame_bytes_max_ = std::min<uint64_t>(frame_bytes_max, protocol::frame_bytes_max);
}

// ---- slots ----

uint64_t channel::open_slot(kind request) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  auto& opened = slots_[index];
  opened.state = slot_state::waiting;
  opened.request = request;
  return opened.generation << index_bits | index;
}

channel::slot* channel::find(uint64_t id) {
  uint64_t index = id & ((1U << index_bits) - 1);
  if (index >= slots_.size() || slots_[index].generation != id >> index_bits ||
      slots_[index].state == slot_state::free)
    return nullptr;
  return &slots_[index];
}

void channel::close_slot(uint64_t id) {
  auto index = static_cast<uint32_t>(id & ((1U << index_bits) - 1));
  auto& closed = slots_[index];
  ++closed.generation;
  closed.state = slot_state::free;
  closed.bytes = 0;
  closed.descriptors = {};
  free_slots_.push_back(index);
}

// ---- sending ----

result<size_t> channel::send_some(std::span<const uint8_t> bytes, std::span<const int> descriptors) {
  protocol::outgoing_message message;
  for (;;) {
    auto sent =
        ::sendmsg(socket_.get(), message.prepare(bytes, descriptors), protocol::send_flags | MSG_DONTWAIT);
    if (sent >= 0)
      return static_cast<size_t>(sent);
    if (errno == EAGAIN)
      return 0;
    if (errno == EINTR)
      continue;
    lost_while_sending(errno);
    return tl::unexpected<error>(*gone_);
  }
}

// The daemon may have sent the reason before it closed; it is then still in the receive buffer.
void channel::lost_while_sending(int reason) {
  outbox_.clear();
  do
    take_in();
  while (receive(std::chrono::steady_clock::now()));
  lose("the daemon is gone: " + std::string(std::strerror(reason)));
}

result<void> channel::flush() {
  while (must_flush()) {
    auto sent = send_some(outbox_, {});
    if (!sent)
      return tl::unexpected<error>(sent.error());
    if (*sent == 0)
      return {};
    outbox_.erase(outbox_.begin(), outbox_.begin() + static_cast<ptrdiff_t>(*sent));
  }
  return {};
}

// Waits until something can be sent, receiving answers meanwhile.
result<void> channel::make_room(deadline until) {
  auto ready = wait_for(socket_.get(), POLLIN | POLLOUT, until);
  if (!ready)
    return tl::unexpected<error>(ready.error());
  if (*ready == 0)
    return fail(errc::deadline, "the daemon did not take the request in time");
  if (!(*ready & (POLLIN | POLLHUP | POLLERR)))
    return {};
  auto received = receive(std::chrono::steady_clock::now());
  take_in();
  return received;
}

result<void> channel::wait_for_credits(protocol::kind what, uint64_t bytes, deadline until) {
  bool gives_back = protocol::gives_back(what) && bytes <= protocol::giving_back_bytes_max &&
                    in_flight_ < credit_requests_ + protocol::giving_back_requests_max;
  while (!gives_back && in_flight_ > 0 &&
         (in_flight_ >= credit_requests_ || in_flight_bytes_ + bytes > credit_bytes_)) {
    if (take_in() > 0)
      continue;
    if (auto ok = receive(until); !ok)
      return ok;
  }
  return {};
}

result<uint64_t> channel::send(uint64_t id, std::span<const int> descriptors, deadline until) {
  auto bytes = builder_.bytes();
  auto give_up = [&](error why) -> result<uint64_t> {
    close_slot(id);
    return tl::unexpected<error>(std::move(why));
  };
  if (bytes.empty() || bytes.size() > frame_bytes_max_)
    return give_up({errc::bad_request, "expected a request of at most " + std::to_string(frame_bytes_max_) +
                                           " bytes; split it or send digests instead of tokens"});
  if (auto ok = wait_for_credits(protocol::read_header(bytes.data()).kind, bytes.size(), until); !ok)
    return give_up(ok.error());
  while (must_flush()) {
    auto ok = flush();
    if (ok && must_flush())
      ok = make_room(until);
    if (!ok)
      return give_up(ok.error());
  }
  auto rest = bytes;
  while (!rest.empty()) {
    bool begun = rest.size() < bytes.size();
    auto sent = send_some(rest, begun ? std::span<const int>{} : descriptors);
    if (!sent)
      return give_up(sent.error());
    rest = rest.subspan(*sent);
    if (*sent > 0)
      continue;
    inside_frame_ = begun; // until the rest is sent, nothing else may be
    auto ok = make_room(until);
    inside_frame_ = false;
    if (ok)
      continue;
    if (ok.error().code != errc::deadline || !begun)
      return give_up(ok.error());
    // Part of a frame is sent. The rest is sent first when the connection is used next; the request is in
    // flight.
    outbox_.insert(outbox_.begin(), rest.begin(), rest.end());
    break;
  }
  slot* sent = find(id);
  sent->bytes = bytes.size();
  in_flight_bytes_ += bytes.size();
  ++in_flight_;
  if (copies_payloads(sent->request))
    ++copies_in_flight_;
  return id;
}

void channel::send_unwatched(uint64_t id) {
  auto bytes = posts_.bytes();
  auto* opened = find(id);
  opened->state = slot_state::forgotten;
  opened->bytes = bytes.size();
  in_flight_bytes_ += bytes.size();
  ++in_flight_;
  size_t sent = 0;
  if (outbox_.empty() && !inside_frame_) {
    // A loss is ignored here: this runs in destructors, and the next call reports it.
    protocol::outgoing_message message;
    auto some = ::sendmsg(socket_.get(), message.prepare(bytes), protocol::send_flags | MSG_DONTWAIT);
    sent = some > 0 ? static_cast<size_t>(some) : 0;
  }
  outbox_.insert(outbox_.end(), bytes.begin() + static_cast<ptrdiff_t>(sent), bytes.end());
}

void channel::post_release(const lease_id& lease) {
  post(kind::release, [&](auto& body) {
    return wire::CreateRelease(body, body.CreateVector(lease.bytes.data(), lease.bytes.size()));
  });
}

void channel::post_abort(uint64_t reservation) {
  post(kind::abort, [&](auto& body) { return wire::CreateAbort(body, reservation); });
}

void channel::post_cancel(uint64_t request) {
  post(kind::cancel, [&](auto& body) { return wire::CreateCancel(body, request); });
}

// ---- receiving ----

// ---- polling ----

namespace {

int64_t ns_now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

} // namespace

/// True: look for an answer first, which whoever cannot wait does anyway.
bool channel::may_poll(const deadline& until) {
  if (!polling_.enabled() || must_flush() || (until && *until <= std::chrono::steady_clock::now()))
    return false;
  return polling_.begins(ns_now());
}

bool channel::polls_on(const deadline& until) {
  auto now = std::chrono::steady_clock::now();
  if (polling_.goes_on(now.time_since_epoch() / std::chrono::nanoseconds(1)) && (!until || now < *until))
    return true;
  end_polling(false);
  return false;
}

void channel::end_polling(bool paid) {
  polling_.ends(paid);
  if (polling_.suspects() && preemptions_.grew())
    polling_.was_preempted(ns_now());
}

result<void> channel::receive(deadline until, on_signal signals) {
  constexpr auto no_answer = "the daemon did not answer in time";
  if (gone_)
    return tl::unexpected<error>(*gone_);
  bool at_once = until && *until <= std::chrono::steady_clock::now();
  bool look_first = until || must_flush() || copies_in_flight_ > 0;
  bool polls = may_poll(until);
  for (;;) {
    if (auto ok = flush(); !ok)
      return ok;
    if (look_first && !polls && !at_once) {
      auto events = static_cast<short>(must_flush() ? POLLIN | POLLOUT : POLLIN);
      auto ready = wait_for(socket_.get(), events, until, signals);
      if (!ready)
        return tl::unexpected<error>(ready.error());
      if (*ready == 0)
        return fail(errc::deadline, no_answer);
      if (!(*ready & ~POLLOUT))
        continue;
    }
    protocol::incoming_message message;
    auto* header = message.prepare(decoder_.write_area());
    auto got =
        ::recvmsg(socket_.get(), header, protocol::receive_flags | (look_first || polls ? MSG_DONTWAIT : 0));
    if (got < 0 && errno == EAGAIN && at_once)
      return fail(errc::deadline, no_answer);
    if (got < 0 && errno == EINTR && signals == on_signal::returns)
      return fail(errc::deadline, no_answer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      polls = polls && polls_on(until);
      continue;
    }
    if (polls)
      end_polling(true);
    if (got <= 0) {
      std::string how = got < 0 ? std::strerror(errno) : "it closed the connection";
      lose("the daemon is gone: " + how + (decoder_.pending_bytes() > 0 ? ", in the middle of a frame" : ""));
      return tl::unexpected<error>(*gone_);
    }
    auto descriptors = message.take();
    if (auto ok = decoder_.commit(static_cast<size_t>(got), std::move(descriptors), message.truncated());
        !ok) {
      take_in();
      lose("the daemon broke the protocol: " + ok.error().text);
    }
    return {};
  }
}

// False, and the end of the channel, for a frame that answers no request.
bool channel::belongs(const protocol::frame& frame) {
  if (frame.request_id == protocol::connection_request_id && frame.kind == kind::error) {
    auto table = protocol::parse<wire::Error>(frame.body);
    if (table)
      refusal_ = static_cast<errc>((*table)->code());
    lose("the daemon ended the connection: " + (table ? (*table)->text()->str() : table.error().text));
    return false;
  }
  auto* asked = find(frame.request_id);
  if (!asked || asked->state == slot_state::answered) {
    lose("the daemon broke the protocol: it answered request " + std::to_string(frame.request_id) +
         ", which was not in flight");
    return false;
  }
  if (frame.kind != kind::error && frame.kind != protocol::answer_to(asked->request)) {
    lose("the daemon broke the protocol: expected an " +
         std::string(protocol::to_string(protocol::answer_to(asked->request))) + ", got an " +
         std::string(protocol::to_string(frame.kind)));
    return false;
  }
  --in_flight_;
  if (copies_payloads(asked->request))
    --copies_in_flight_;
  in_flight_bytes_ -= asked->bytes;
  return true;
}

void channel::keep(protocol::frame& frame) {
  auto* asked = find(frame.request_id);
  if (asked->state == slot_state::forgotten) {
    close_slot(frame.request_id);
    drop(frame.kind, frame.body);
    return;
  }
  asked->state = slot_state::answered;
  asked->answer_kind = frame.kind;
  asked->body.assign(frame.body.begin(), frame.body.end());
  asked->descriptors = std::move(frame.descriptors);
}

uint32_t channel::take_in() {
  uint32_t count = 0;
  while (auto frame = decoder_.next()) {
    if (!belongs(*frame))
      break;
    ++count;
    keep(*frame);
  }
  return count;
}

void channel::drop(kind what, std::span<const uint8_t> body) {
  if (what == protocol::answer_to(kind::lookup)) {
    if (auto table = protocol::parse<wire::LookupAnswer>(body); table && (*table)->lease())
      post_release(protocol::to_lease_id((*table)->lease()));
  } else if (what == protocol::answer_to(kind::await_lookup)) {
    if (auto table = protocol::parse<wire::AwaitLookupAnswer>(body); table && (*table)->found()->lease())
      post_release(protocol::to_lease_id((*table)->found()->lease()));
  } else if (what == protocol::answer_to(kind::reserve)) {
    if (auto table = protocol::parse<wire::ReserveAnswer>(body))
      post_abort((*table)->reservation());
  }
}

result<answer> channel::wait(uint64_t id, deadline until) {
  for (;;) {
    auto* asked = find(id);
    if (!asked)
      return fail(errc::bad_request, "expected a request in flight, got one whose answer was taken already");
    if (asked->state == slot_state::answered) {
      answer out{asked->answer_kind, {}, std::move(asked->descriptors)};
      taken_.swap(asked->body);
      out.body = taken_;
      close_slot(id);
      return out;
    }
    while (auto frame = decoder_.next()) {
      if (!belongs(*frame))
        break;
      if (frame->request_id == id) {
        close_slot(id);
        return answer{frame->kind, frame->body, std::move(frame->descriptors)};
      }
      keep(*frame);
    }
    if (gone_) {
      close_slot(id);
      return tl::unexpected<error>(*gone_);
    }
    if (auto ok = receive(until); !ok && !gone_)
      return tl::unexpected<error>(ok.error());
  }
}

result<uint32_t> channel::poll(deadline until, on_signal signals) {
  uint32_t count = take_in();
  // With nothing in flight there is nothing to wait for, but the loss of the daemon is noticed: an event loop may be here because of it.
  const bool looks = in_flight_ == 0;
  if (looks)
    until = std::chrono::steady_clock::now();
  while (count == 0 && (in_flight_ > 0 || looks)) {
    auto ok = receive(until, signals);
    count = take_in();
    if (!ok && count == 0) {
      if (ok.error().code == errc::deadline)
        return 0;
      return tl::unexpected<error>(ok.error());
    }
  }
  return count;
}

bool channel::ready(uint64_t id) {
  take_in();
  auto* asked = find(id);
  return gone_ || (asked && asked->state == slot_state::answered);
}

bool channel::in_flight(uint64_t id) {
  take_in();
  auto* asked = find(id);
  return !gone_ && asked && (asked->state == slot_state::waiting || asked->state == slot_state::forgotten);
}

void channel::forget(uint64_t id) {
  auto* asked = find(id);
  if (!asked)
    return;
  if (asked->state == slot_state::waiting) {
    asked->state = slot_state::forgotten;
    return;
  }
  auto what = asked->answer_kind;
  std::vector<uint8_t> body;
  body.swap(asked->body);
  close_slot(id);
  drop(what, body);
}

} // namespace terrace::client::detail
