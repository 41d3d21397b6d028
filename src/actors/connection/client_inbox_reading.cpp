// The inbox reads a client's frames in their order, as far as credit and the trust group's memory have room.
#include "actors/connection/client_inbox.hpp"

#include "connection/request_values.hpp"

#include <algorithm>
#include <new>

namespace terrace::actors {

/// Serves received frames while there is credit, then receives more. Without credit, requests are kept until there is
/// (waiting_requests.hpp), so that what ends them is read. Beyond the bound of those, nothing behind a header is read, and
/// the end of the stream is watched.
void client_inbox::pump() {
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
      waiting_.add(std::move(*frame), has_room, environment_.now(), [this] { return channel_->hold(); });
      environment_.client_probe->stopped_reading();
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
  environment_.client_probe->stopped_reading();
  channel_->watch_hang_up();
}

/// Serves the first request that waits, if it may begin.
bool client_inbox::serve_waiting() {
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
void client_inbox::discard(protocol::frame frame) {
  if (!frame.descriptors.empty() && environment_.teardown)
    environment_.teardown->destroy(std::move(frame.descriptors));
}

void client_inbox::account_memory(uint64_t unfinished_frame) {
  auto change = gate_.account(requests_.group_bytes() + waiting_.bytes(), unfinished_frame);
  flooded_ = flooded_ || change.now >= flood_bytes;
  if (change.flood_over)
    trim_at_end(environment_.teardown);
  environment_.client_probe->requests_take(change.before, change.now);
}

bool client_inbox::charge(const request_entry& entry, size_t objects) {
  uint64_t bytes = objects * object_credit;
  bool few = bytes <= request_memory::few_bytes;
  requests_.charge(entry.id, bytes, !few);
  account_memory(gate_.unfinished_bytes());
  return few || (waiting_for_memory_.empty() && charge_objects(entry.id, bytes));
}

/// The requests of the trust group have room for the objects of this one now.
bool client_inbox::charge_objects(request_id id, uint64_t bytes) {
  if (!gate_.charge_objects(bytes))
    return false;
  requests_.took_objects(id, bytes);
  environment_.client_probe->requests_take(0, bytes);
  return true;
}

void client_inbox::wait_for_room(const request_entry& entry, size_t objects, const continuation& waiting) {
  waiting_for_memory_.push_back({entry, objects * object_credit, waiting});
}

void client_inbox::expect_objects(const request_entry& entry, size_t objects) {
  requests_.expect(entry.id, objects * object_credit);
  account_memory(gate_.unfinished_bytes());
}

void client_inbox::objects_are_known(const request_entry& entry) {
  requests_.settle(entry.id);
  account_memory(gate_.unfinished_bytes());
  pump(); // there may be credit again
}

/// Goes on with the requests whose objects have room now.
void client_inbox::admit_waiting() {
  while (!waiting_for_memory_.empty() &&
         charge_objects(waiting_for_memory_.front().entry.id, waiting_for_memory_.front().bytes)) {
    auto first = std::move(waiting_for_memory_.front());
    waiting_for_memory_.pop_front();
    first.next.go_on();
  }
  if (waiting_for_memory_.empty())
    gate_.takes_no_objects(); // it may have been woken
}

/// Refuses the requests that ended while they waited for room.
void client_inbox::refuse_ended() {
  std::vector<waiting_for_memory> ended;
  std::erase_if(waiting_for_memory_, [&ended](const waiting_for_memory& each) {
    if (!each.entry.context->live())
      ended.push_back(each);
    return !each.entry.context->live();
  });
  if (ended.empty())
    return;
  admit_waiting(); // another one may be the first
  for (const waiting_for_memory& each : ended)
    each.next.fail(
        {each.entry.context->ended.load(),
         "the request ended while the requests of its trust group took connection.group_bytes, and "
         "its objects had to wait"});
}

void client_inbox::give_back_room(uint64_t bytes) {
  if (bytes == 0)
    return;
  gate_.give_back_objects(bytes);
  environment_.client_probe->requests_take(bytes, 0);
}

/// A frame that has begun takes memory, so it must arrive in time.
void client_inbox::expect_rest_of_frame(uint64_t bytes) {
  if (life_.now() == connection_phase::handshake || (bytes != 0) == deadlines_.has_end())
    return;
  if (bytes == 0)
    deadlines_.moved_on();
  else
    end_by(environment_.limits.request_deadline);
}

} // namespace terrace::actors
