// When a connection reads, and how long it waits: credits, the group's memory, deadlines. How it goes on with a request
// in parts. connection.cpp has its life.
#include "actors/connection/connection.hpp"
#include "connection/request_values.hpp"
#include "memory/heap_trim.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <new>

namespace terrace::actors {

// ---- reading ----

/// Serves received frames while there is credit, then receives more. Without credit, requests are kept until there is
/// (waiting_requests.hpp), so that what ends them is read. Beyond the bound of those, nothing behind a header is read, and
/// the end of the stream is watched.
void connection::pump() {
  if (pumping_)
    return; // a verb answered immediately: the loop below continues
  pumping_ = true;
  gate_.look();
  bool stopped = false, served = false;
  uint64_t unfinished = 0;
  while (life_.reads()) {
    if (serve_waiting())
      continue;
    auto head = channel_->peek();
    auto let_in = head ? gate_.may_receive(*head, requests_, waiting_) : reading_gate::admission::keep;
    stopped = let_in == reading_gate::admission::wait;
    if (stopped)
      break;
    auto frame = channel_->next();
    unfinished = head && !frame ? head->length : 0;
    if (!frame)
      break;
    served = true;
    bool has_room = let_in == reading_gate::admission::has_room;
    if (waiting_.may_pass(*frame) && gate_.may_begin(*head, requests_, has_room)) {
      serve(*frame);
      discard(std::move(*frame));
    } else {
      waiting_.add(std::move(*frame), has_room, environment_->now(), [this] { return channel_->hold(); });
      environment_->client_probe->stopped_reading();
    }
    account_memory(0);
  }
  pumping_ = false;
  if (!life_.reads())
    return;
  account_memory(unfinished);
  if (served && life_.now() != connection_phase::handshake)
    deadlines_.moved_on(); // the frame that has begun is another one
  expect_rest_of_frame(unfinished);
  if (!gate_.waits_for_room())
    gate_.pass_on(); // it may have been woken
  if (!stopped) {
    channel_->receive();
    return;
  }
  environment_->client_probe->stopped_reading();
  channel_->watch_hang_up();
}

/// Serves the first request that waits, if it may begin.
bool connection::serve_waiting() {
  auto* first = waiting_.first();
  if (first == nullptr || !gate_.may_begin(first->header(), requests_, first->has_room))
    return false;
  auto taken = waiting_.take_first();
  served_body_ = taken.body;
  serve(taken.frame, taken.arrived);
  served_body_ = nullptr;
  discard(std::move(taken.frame));
  account_memory(gate_.unfinished_bytes());
  return true;
}

/// Descriptors that a verb did not take: closing the last one of a memfd frees its pages.
void connection::discard(protocol::frame frame) {
  if (!frame.descriptors.empty() && environment_->teardown)
    environment_->teardown->destroy(std::move(frame.descriptors));
}

void connection::account_memory(uint64_t unfinished_frame) {
  auto change = gate_.account(requests_.group_bytes() + waiting_.bytes(), unfinished_frame);
  flooded_ = flooded_ || change.now >= flood_bytes;
  if (change.flood_over)
    trim_at_end(environment_->teardown);
  environment_->client_probe->requests_take(change.before, change.now);
}

bool connection::charge(const request& what, size_t objects) {
  uint64_t bytes = objects * object_credit;
  bool few = bytes <= request_memory::few_bytes;
  requests_.charge(what.id, bytes, !few);
  account_memory(gate_.unfinished_bytes());
  return few;
}

void connection::wait_for_room(const request& what, size_t objects, const continuation& waiting) {
  roomless_.push_back({what, objects * object_credit, waiting});
  if (roomless_.size() == 1)
    take_room();
}

/// Goes on with the requests whose objects have room now.
void connection::take_room() {
  while (!roomless_.empty() && gate_.take_objects(roomless_.front().bytes)) {
    auto first = std::move(roomless_.front());
    roomless_.pop_front();
    requests_.took_objects(first.what.id, first.bytes);
    environment_->client_probe->requests_take(0, first.bytes);
    first.next.go_on();
  }
  if (roomless_.empty())
    gate_.takes_no_objects(); // it may have been woken
}

/// Refuses the requests that ended while they waited for room.
void connection::refuse_roomless() {
  std::vector<roomless> ended;
  std::erase_if(roomless_, [&ended](const roomless& each) {
    if (!each.what.context->live())
      ended.push_back(each);
    return !each.what.context->live();
  });
  if (ended.empty())
    return;
  take_room(); // another one may be the first
  for (const roomless& each : ended)
    each.next.fail(
        {each.what.context->ended.load(),
         "the request ended while the requests of its trust group took connection.group_bytes, and "
         "its objects had to wait"});
}

void connection::give_back_room(uint64_t bytes) {
  if (bytes == 0)
    return;
  gate_.give_back_objects(bytes);
  environment_->client_probe->requests_take(bytes, 0);
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

// ---- parts of requests ----

std::function<void()> connection::on_any_thread(std::function<void()> work) {
  auto shared = std::make_shared<std::function<void()>>(std::move(work));
  return [owner = caf::actor_cast<caf::actor_addr>(self_), shared] {
    if (auto there = caf::actor_cast<connection_actor>(owner))
      caf::anon_send(there, resume_notice{shared});
  };
}

/// What the populator has in hand is unmapped when it lets go of it.
void connection::resume_after_teardown(const request& what, std::function<void()> work) {
  const teardown_ptr& line = environment_->teardown;
  if (!line || !environment_->populator) {
    resume_after(line, what, std::move(work));
    return;
  }
  auto marked = marked_work(what, std::move(work));
  environment_->populator->after_slice(
      [line, marked = std::move(marked)]() mutable { line->run(std::move(marked)); });
}

void connection::resume_after(const teardown_ptr& line, const request& what, std::function<void()> work) {
  if (line)
    line->run(marked_work(what, std::move(work)));
  else
    resume(std::move(work));
}

/// What another thread runs when the request may go on.
std::function<void()> connection::marked_work(const request& what, std::function<void()> work) {
  auto shared = std::make_shared<std::function<void()>>(std::move(work));
  after_teardown_.add(what.context, shared);
  return [owner = caf::actor_cast<caf::actor_addr>(self_), shared]() mutable {
    if (auto there = caf::actor_cast<connection_actor>(owner))
      caf::anon_send(there,
                     resume_notice{std::move(shared)}); // what it owns must not end on the other thread
  };
}

void connection::resume(std::function<void()> work) {
  assert(resuming_ < requests_max());
  ++resuming_;
  auto part = [this, go_on = std::move(work)] {
    --resuming_;
    go_on();
  };
  self_->send(self_, resume_notice{std::make_shared<std::function<void()>>(std::move(part))});
}

// ---- what is left to the client, by its declarations ----

uint32_t connection::prefill_speed(const wire::Options* options, const client_space& in) const {
  return group().cost_model->load(std::memory_order_relaxed) ? prefill_speed_of(options, in.defaults) : 0;
}

bool connection::loads_nothing(const wire::Options* options, const client_space& in) {
  bool nothing = no_load_of(options, in.defaults);
  if (nothing)
    environment_->client_probe->loaded_nothing();
  return nothing;
}

bool connection::stores_nothing(const wire::Options* options, const client_space& in) {
  bool nothing = no_store_of(options, in.defaults);
  if (nothing)
    environment_->client_probe->stored_nothing();
  return nothing;
}

void connection::count_recomputed(const space_spec& spec, uint32_t chunks) {
  if (chunks != 0)
    environment_->client_probe->left_to_recompute(uint64_t{chunks} * spec.chunk_tokens);
}

} // namespace terrace::actors
