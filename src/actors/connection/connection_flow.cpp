// When a connection reads, and how long it waits: credits, the group's memory, deadlines. connection.cpp has its life.
#include "actors/connection/connection.hpp"

#include <caf/send.hpp>

#include <malloc.h>

#include <algorithm>

namespace terrace::actors {

// ---- reading ----

/// Serves received frames while there is credit, then receives more. Without credit it reads on up to the header of
/// the next request: what gives something back is served all the same, for anything else the client waits, and the end
/// of its stream is watched.
void connection::pump() {
  if (pumping_)
    return; // a verb answered immediately: the loop below continues
  pumping_ = true;
  bool stopped = false, served = false;
  uint64_t unfinished = 0;
  while (life_.reads()) {
    auto head = channel_->peek();
    stopped = head && !gate_.may_continue(*head, requests_);
    if (stopped)
      break;
    auto frame = channel_->next();
    unfinished = head && !frame ? head->length : 0;
    if (!frame)
      break;
    serve(*frame);
    served = true;
    account_memory(0);
    // Those that the verb did not take: closing the last one of a memfd frees its pages.
    if (!frame->descriptors.empty() && environment_->teardown)
      environment_->teardown->destroy(std::move(frame->descriptors));
  }
  pumping_ = false;
  if (!life_.reads())
    return;
  account_memory(unfinished);
  if (served && life_.now() != connection_phase::handshake)
    deadlines_.moved_on(); // the frame that has begun is another one
  expect_rest_of_frame(unfinished);
  if (!stopped || !gate_.waits_for_room())
    gate_.pass_on(); // it may have been woken
  if (!stopped) {
    channel_->receive();
    return;
  }
  environment_->client_probe->stopped_reading();
  channel_->watch_hang_up();
}

void connection::account_memory(uint64_t unfinished_frame) {
  auto change = gate_.account(requests_.bytes(), unfinished_frame);
  if (change.flood_over)
    self_->system().spawn<caf::detached>([] { ::malloc_trim(0); }); // it takes milliseconds
  environment_->client_probe->requests_take(change.before, change.now);
}

/// A frame that has begun takes memory, so it must arrive in time.
void connection::expect_rest_of_frame(uint64_t bytes) {
  if (life_.now() == connection_phase::handshake || (bytes != 0) == deadlines_.has_end())
    return;
  if (bytes == 0)
    deadlines_.moved_on();
  else
    end_by(environment_->limits.request_deadline);
}

// ---- time ----

/// The connection ends at that time, unless it moves on: a handshake, or the sending of its last frame.
void connection::end_by(clock::duration after) {
  deadlines_.end_by(environment_->now() + after);
  arm_timer(deadlines_.end());
}

void connection::arm_timer(clock::time_point at) {
  if (at >= timer_at_)
    return;
  if (timer_at_ != clock::time_point::max())
    self_->port().cancel(timer_);
  timer_at_ = at;
  runtime::io_request operation;
  operation.code = runtime::io_code::timeout;
  operation.after = std::max(at - environment_->now(), clock::duration(0));
  timer_ = self_->port().submit(std::move(operation), caf::actor_cast<caf::strong_actor_ptr>(self_),
                                io_tag::timer);
}

void connection::on_timer() {
  auto now = environment_->now();
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
  if (requests.any) {
    sweep();
    resume_ended();
  }
  auto leases = holdings_.old_leases(now, environment_->limits.lease_warn_after);
  for (const lease_ptr& old : leases.old) {
    environment_->client_probe->lease_old();
    log_.info("holds a lease on " + std::to_string(old->chunks.size()) +
              " chunks for longer than lease.warn_after");
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

void connection::set_deadline(const request& what, uint32_t deadline_ms) {
  if (deadline_ms == 0)
    return;
  if (auto at = requests_.set_deadline(what.id, std::chrono::milliseconds(deadline_ms)))
    arm_timer(*at);
}

} // namespace terrace::actors
