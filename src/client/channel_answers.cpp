// The receiving side of a channel: the socket, and the answers that arrive on it.
#include "client/channel.hpp"

#include "protocol/verify.hpp"

#include <cerrno>
#include <cstring>

#include <poll.h>

namespace terrace::client::detail {

using protocol::kind;

// ---- polling ----

namespace {

int64_t ns_now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

} // namespace

/// True: look for an answer before sleeping. A caller that cannot wait does so anyway.
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

// ---- receiving ----

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

// Returns false, and ends the channel, for a frame that answers no request.
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
  if (asked->copies_payloads())
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

void channel::drop(kind verb, std::span<const uint8_t> body) {
  if (verb == protocol::answer_to(kind::lookup)) {
    if (auto table = protocol::parse<wire::LookupAnswer>(body); table && (*table)->lease())
      post_release(protocol::to_lease_id((*table)->lease()));
  } else if (verb == protocol::answer_to(kind::await_lookup)) {
    if (auto table = protocol::parse<wire::AwaitLookupAnswer>(body); table && (*table)->found()->lease())
      post_release(protocol::to_lease_id((*table)->found()->lease()));
  } else if (verb == protocol::answer_to(kind::reserve)) {
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
  // With nothing in flight there is nothing to wait for. But the loss of the daemon is noticed, because an
  // event loop may be here for that reason.
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
  auto verb = asked->answer_kind;
  std::vector<uint8_t> body;
  body.swap(asked->body);
  close_slot(id);
  drop(verb, body);
}

} // namespace terrace::client::detail
