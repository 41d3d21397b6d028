#include "actors/connection/client_inbox.hpp"

#include "connection/request_values.hpp"
#include "memory/teardown.hpp"
#include "protocol/frame_builder.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>

#include <poll.h>

#include <algorithm>
#include <new>

namespace terrace::actors {

client_inbox::client_inbox(owner& of, connected_client& client, unique_fd socket, runtime::io_port& port,
                           const caf::strong_actor_ptr& actor)
    : owner_(of), client_(client), environment_(client.environment()), port_(port),
      actor_(caf::actor_cast<caf::weak_actor_ptr>(actor)),
      channel_(std::make_unique<frame_channel>(std::move(socket), port, actor, environment_.teardown)),
      life_(client.who().pid, client.who().pidfd != nullptr),
      requests_(client.record()->id,
                {environment_.limits.credit_requests, environment_.limits.credit_bytes,
                 environment_.limits.request_deadline, environment_.limits.request_deadline_max}),
      waiting_({environment_.limits.credit_requests, environment_.limits.credit_bytes}),
      gate_(client.record()->id, environment_.memory), deadlines_(environment_.limits.request_deadline) {}

// ---- its life ----

void client_inbox::begin() {
  channel_->set_frame_bytes_max(protocol::hello_bytes_max);
  gate_.on_room(owner_.on_any_thread([this] { pump(); }));
  gate_.on_objects(owner_.on_any_thread([this] { admit_waiting(); }));
  end_by(environment_.limits.handshake_deadline);
  channel_->receive();
}

void client_inbox::greeted(bool observes) {
  life_.greeted(observes);
  show_phase();
  deadlines_.moved_on();
  channel_->set_frame_bytes_max(protocol::frame_bytes_max);
}

void client_inbox::take(next step) {
  if (step == next::say_goodbye)
    end(connection_life::shutting_down());
  else if (step == next::finish)
    finish();
  else if (step == next::quit)
    owner_.quit();
}

void client_inbox::received(int32_t bytes) {
  uint64_t before = channel_->received_bytes;
  auto open = channel_->received(bytes);
  environment_.client_probe->received(channel_->received_bytes - before);
  if (life_.ends())
    return;
  pump();
  if (life_.ends())
    return;
  if (!open)
    end(open.error());
  else if (!*open)
    finish();
}

void client_inbox::sent(int32_t bytes) {
  uint64_t before = channel_->sent_bytes;
  std::vector<uint64_t> answered;
  bool open = channel_->sent(bytes, answered);
  environment_.client_probe->sent(channel_->sent_bytes - before);
  for (uint64_t id : answered)
    answer_sent(id);
  if (channel_->sending())
    expect_reading(environment_.now());
  else
    deadlines_.took(environment_.now());
  if (open && channel_->waits())
    return; // at the end of the turn
  auto follows = life_.sent(open, channel_->sending(), requests_.empty());
  if (follows == next::go_on)
    pump();
  else
    take(follows);
}

/// Sends what was answered. Most of it the socket takes at once; then requests that had to wait for credit have it.
void client_inbox::end_turn() {
  std::vector<uint64_t> answered;
  while (channel_->waits()) {
    uint64_t before = channel_->sent_bytes;
    answered.clear();
    channel_->send_line(answered, life_.ends());
    environment_.client_probe->sent(channel_->sent_bytes - before);
    for (uint64_t id : answered)
      answer_sent(id);
    if (channel_->sending()) {
      expect_reading(environment_.now());
      break;
    }
    take(life_.sent(true, false, requests_.empty()));
    if (life_.reads() && (!waiting_.empty() || !channel_->receiving()))
      pump();
  }
  in_turn_ = false;
}

void client_inbox::process_ended() {
  life_.process_ended();
  show_phase();
}

void client_inbox::hung_up(int32_t events) {
  if (channel_->hung_up(events))
    take(life_.hung_up((events & POLLHUP) != 0, channel_->receiving()));
}

void client_inbox::serve(protocol::frame& frame, std::optional<clock::time_point> arrived) {
  auto asked = arriving(frame, requests_.contains(frame.request_id));
  if (auto why = violation_of(asked, life_.now()); why.code != errc::ok) {
    violation(frame, why);
    return;
  }
  request_entry entry;
  try {
    entry = begin(frame, arrived ? *arrived : environment_.now());
  } catch (const std::bad_alloc&) {
    refuse_unbegun(frame);
    return;
  }
  if (auto refused = refusal_of(asked, life_.now(), life_.observes())) {
    if (refused->malformed)
      refuse_frame(entry, frame, refused->why);
    else
      refuse_unread(entry, frame, metrics::refusal::draining, refused->why);
    return;
  }
  owner_.serve(entry, frame);
}

request_entry client_inbox::begin(const protocol::frame& frame, clock::time_point arrived) {
  arm_timer(arrived + environment_.limits.request_deadline);
  request_entry entry{frame.request_id, frame.kind, nullptr};
  entry.context = requests_.begin(entry.id, entry.kind, frame.body.size() + protocol::header_bytes, arrived);
  entry.context->group = environment_.group->number;
  client_.record()->requests_in_flight = static_cast<uint32_t>(requests_.size());
  ++client_.record()->requests;
  environment_.request_probe->started(static_cast<size_t>(entry.kind));
  return entry;
}

/// There is no memory to remember it.
void client_inbox::refuse_unbegun(const protocol::frame& frame) {
  auto refusal = channel_->builder();
  protocol::write_error(*refusal, frame.request_id, no_memory_for(frame.kind));
  channel_->send({std::move(refusal), {}, 0}, in_turn_);
}

void client_inbox::refuse_frame(const request_entry& entry, const protocol::frame& frame, const error& why) {
  if (life_.now() == connection_phase::handshake)
    violation(frame, why);
  else
    refuse_unread(entry, frame, metrics::refusal::malformed, why);
}

/// Its verb does not get it.
void client_inbox::refuse_unread(const request_entry& entry, const protocol::frame& frame,
                                 metrics::refusal as, const error& why) {
  environment_.client_probe->refused(as);
  refuse_unserved(entry, frame, why);
}

void client_inbox::refuse_unserved(const request_entry& entry, const protocol::frame& frame,
                                   const error& why) {
  refuse(entry, why);
  owner_.refused(entry, frame);
}

void client_inbox::violation(const protocol::frame& frame, const error& why) {
  environment_.client_probe->refused(metrics::refusal::malformed);
  end(with_frame(why, frame));
}

// ---- answers ----

void client_inbox::answer(const request_entry& entry, errc outcome,
                          std::unique_ptr<protocol::frame_builder> frame,
                          std::vector<unique_fd> descriptors) {
  if (life_.ends())
    return; // the reason is its last frame
  auto now = environment_.now();
  auto latency = requests_.answer(entry.id, entry.context, now);
  if (!latency)
    return;
  environment_.request_probe->finished(static_cast<size_t>(entry.kind), outcome, *latency);
  ++client_.record()->answered;
  client_.record()->latency_ns += static_cast<uint64_t>(latency->count());
  client_.log().answered(entry.id, entry.kind, outcome, *latency, entry.context->trace);
  if (outcome == errc::busy)
    environment_.client_probe->refused(metrics::refusal::queue_full);
  if (frame->bytes().empty())
    protocol::write_error(
        *frame, entry.id,
        {errc::unsupported, "the answer does not fit in a frame; request fewer chunks at a time"});
  give_back_room(requests_.return_objects(entry.id));
  requests_.charge(entry.id, frame->bytes().size());
  account_memory(gate_.unfinished_bytes());
  if (!in_turn_ && !channel_->sending())
    expect_reading(now);
  channel_->send({std::move(frame), std::move(descriptors), entry.id}, in_turn_);
}

/// The client is expected to take what is being sent.
void client_inbox::expect_reading(clock::time_point now) {
  deadlines_.took(now);
  arm_timer(deadlines_.next(now, true));
}

void client_inbox::refuse(const request_entry& entry, const error& why) {
  auto frame = channel_->builder();
  protocol::write_error(*frame, entry.id, with_trace(why, entry.context->trace));
  answer(entry, why.code, std::move(frame), {});
}

void client_inbox::answer_sent(request_id id) {
  requests_.sent(id);
  account_memory(gate_.unfinished_bytes());
  client_.record()->requests_in_flight = static_cast<uint32_t>(requests_.size());
}

// ---- ends ----

bool client_inbox::cancel(request_id id, errc why) {
  auto outcome = requests_.cancel(id, why);
  if (outcome == request_table::cancelled::now) // once per request, however often it is cancelled
    owner_.requests_ended();
  return outcome != request_table::cancelled::unknown || cancel_waiting(id, why);
}

/// A request that has not begun is answered at once.
bool client_inbox::cancel_waiting(request_id id, errc why) {
  auto taken = waiting_.take(id);
  if (!taken)
    return false;
  auto entry = begin(taken->frame, taken->arrived);
  entry.context->ended = why;
  refuse_unserved(entry, taken->frame, {why, "the request ended before there was credit to begin it"});
  discard(std::move(taken->frame));
  return true;
}

void client_inbox::end(const error& why) {
  if (!life_.close())
    return;
  show_phase();
  gate_.pass_on();
  waiting_for_memory_.clear();
  gate_.takes_no_objects();
  client_.log().end("ends: " + why.text, environment_.now());
  auto frame = channel_->builder();
  protocol::write_error(*frame, 0, why);
  channel_->send({std::move(frame), {}, 0});
  channel_->watch_hang_up();
  end_by(environment_.limits.handshake_deadline); // for a client that does not read
}

void client_inbox::leave() {
  if (auto why = life_.leave())
    end(*why);
}

bool client_inbox::close() {
  give_back_room(requests_.objects_taken());
  waiting_for_memory_.clear();
  gate_.takes_no_objects();
  bool any = requests_.end_all(environment_.now(), [&](protocol::kind verb, auto age) {
    environment_.request_probe->finished(static_cast<size_t>(verb), errc::cancelled, age);
  });
  if (environment_.teardown && !waiting_.empty())
    environment_.teardown->destroy(std::move(waiting_)); // descriptors, see `discard`
  waiting_.clear();
  account_memory(0);
  gate_.pass_on();
  client_.record()->requests_in_flight = 0;
  channel_->shut();
  if (std::exchange(flooded_, false))
    channel_->keep_while_sending(trim_at_end(environment_.teardown));
  return any;
}

/// The socket is closed. Memory that a living process may still be reading is kept until it dies or confirms.
void client_inbox::finish() {
  if (life_.now() == connection_phase::quarantined)
    return; // an answer that was being sent when the socket closed
  owner_.close();
  const client_holdings& kept_for_it = client_.holdings();
  bool kept = life_.quarantine(kept_for_it.leases() != 0 || kept_for_it.regions().keeps_events());
  show_phase();
  if (!kept) {
    owner_.quit();
    return;
  }
  environment_.clients->quarantine(client_.record()->id);
  client_.count_quarantine(true);
  client_.log().end("closed its socket; objects that it may be reading are kept until it ends",
                    environment_.now());
}

void client_inbox::confirmed(pid_t pid) {
  auto follows = life_.confirmed(pid);
  if (follows == next::quit)
    client_.holdings().client_ended();
  take(follows);
}

void client_inbox::drain() {
  auto follows = life_.drain(requests_.empty());
  show_phase();
  using protocol::kind;
  for (auto waits : {kind::subscribe, kind::recent_lookups, kind::announce, kind::follow})
    for (request_id id : requests_.of(waits)) // nothing else may ever answer them
      cancel(id, errc::busy);
  take(follows);
}

// ---- time ----

/// The connection ends at that time, unless it moves on: a handshake, or the sending of its last frame.
void client_inbox::end_by(clock::duration after) {
  deadlines_.end_by(environment_.now() + after);
  arm_timer(deadlines_.end());
}

void client_inbox::arm_timer(clock::time_point at) {
  if (at >= timer_at_)
    return;
  if (timer_at_ != clock::time_point::max())
    port_.cancel(timer_);
  timer_at_ = at;
  runtime::io_request operation;
  operation.code = runtime::io_code::timeout;
  operation.after = std::max(at - environment_.now(), clock::duration(0));
  timer_ = port_.submit(std::move(operation), caf::actor_cast<caf::strong_actor_ptr>(actor_), io_tag::timer);
}

void client_inbox::timer() {
  auto now = environment_.now();
  if (now < timer_at_ && timer_at_ != clock::time_point::max())
    return; // an earlier one was armed instead
  timer_at_ = clock::time_point::max();
  auto phase = life_.now();
  if (phase == connection_phase::quarantined)
    return;
  if (deadlines_.is_over(now)) {
    if (phase == connection_phase::closing)
      finish(); // the client does not read its last frame
    else
      end(client_deadlines::overdue(phase));
    return;
  }
  if (phase == connection_phase::closing) {
    arm_timer(deadlines_.end());
    return;
  }
  auto requests = requests_.expire(now);
  if (requests.any)
    owner_.requests_ended();
  auto leases = client_.holdings().old_leases(now, environment_.limits.lease_warn_after);
  for (const lease_ptr& old : leases.old) {
    environment_.client_probe->lease_old();
    client_.log().old_lease(old->chunks.size(), now);
  }
  bool sending = channel_->sending();
  if (sending && deadlines_.leaves_unread(now) && gate_.group_is_full()) {
    end(client_deadlines::unread());
    return;
  }
  auto soonest = std::min({requests.next, leases.next, deadlines_.next(now, sending)});
  if (soonest != clock::time_point::max())
    arm_timer(soonest);
}

void client_inbox::set_deadline(const request_entry& entry, uint32_t deadline_ms) {
  if (deadline_ms == 0)
    return;
  if (auto at = requests_.set_deadline(entry.id, std::chrono::milliseconds(deadline_ms)))
    arm_timer(*at);
}

bool client_inbox::set_part(const request_entry& entry, const context_ptr& part) {
  const auto until = requests_.set_part(entry.id, part, environment_.now());
  if (until && part)
    arm_timer(*until);
  return until.has_value();
}

} // namespace terrace::actors
