#include "actors/allocation_queue.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::actors {

allocation_queue::allocation_queue(std::unique_ptr<allocator> space, uint64_t free_ahead_bytes,
                                   size_t waiting_max)
    : space_(std::move(space)), free_ahead_bytes_(free_ahead_bytes), waiting_max_(waiting_max) {}

void allocation_queue::allocate(const allocate_request& request, reply answer) {
  uint64_t physical = 0;
  for (uint64_t size : request.sizes) {
    if (size == 0 || size > space_->largest_possible()) {
      answer({error{errc::bad_request, "an object of " + std::to_string(size) +
                                           " bytes does not fit the arena, whose "
                                           "largest extent is " +
                                           std::to_string(space_->largest_possible()) + " bytes"},
              {}});
      return;
    }
    physical += space_->physical_size(size);
  }
  if (physical > space_->usage().capacity_bytes) {
    answer({error{errc::no_space, "the request needs " + std::to_string(physical) +
                                      " bytes at once, the arena has " +
                                      std::to_string(space_->usage().capacity_bytes)},
            {}});
    return;
  }
  if (line_.size() >= waiting_max_) {
    answer({error{errc::busy,
                  std::to_string(line_.size()) + " requests wait for memory already; try again later"},
            {}});
    return;
  }
  line_.push_back({request, physical, std::move(answer)});
  serve();
}

void allocation_queue::free(const std::vector<extent>& extents) {
  space_->free(extents);
  serve();
}

void allocation_queue::room_made(const std::vector<extent>& extents, bool exhausted,
                                 const std::string& holders) {
  asked_ = false;
  exhausted_ = exhausted;
  holders_ = holders;
  if (!extents.empty())
    space_->free(extents);
  serve();
}

error allocation_queue::ended(const waiting_request& waiting) const {
  errc why = waiting.request.context->ended.load();
  if (why == errc::deadline && exhausted_) // the wait was for memory that nobody gave back
    why = errc::no_space;
  return {why, "the request ended while it waited for " + std::to_string(waiting.physical_bytes) +
                   " bytes of memory" + (holders_.empty() ? "" : ": " + holders_)};
}

void allocation_queue::serve() {
  while (!line_.empty()) {
    waiting_request& head = line_.front();
    if (head.request.context && !head.request.context->live()) {
      head.answer({ended(head), {}});
    } else if (auto extents = space_->allocate(head.request.sizes)) {
      head.answer({{}, std::move(*extents)});
    } else if (exhausted_ && !head.request.may_wait) {
      head.answer(
          {error{errc::no_space, "nothing can be evicted to make " + std::to_string(head.physical_bytes) +
                                     " bytes free: " + holders_},
           {}});
    } else {
      return;
    }
    line_.pop_front();
    retries_ = 0;
  }
}

void allocation_queue::sweep() {
  std::deque<waiting_request> kept;
  if (!line_.empty() && line_.front().request.context && !line_.front().request.context->live())
    retries_ = 0; // they were of the head
  for (waiting_request& entry : line_) {
    if (!entry.request.context || entry.request.context->live()) {
      kept.push_back(std::move(entry));
      continue;
    }
    entry.answer({ended(entry), {}});
  }
  line_ = std::move(kept);
  serve();
}

uint64_t allocation_queue::room_wanted() {
  if (asked_ || exhausted_)
    return 0;
  uint64_t free = space_->usage().free_bytes;
  uint64_t wanted = free_ahead_bytes_;
  if (!line_.empty()) {
    // Free bytes need not be one run: each further try asks for as much again, until it fits or nothing may leave.
    uint64_t needed = line_.front().physical_bytes;
    if (free >= needed)
      ++retries_;
    wanted = std::max(wanted, needed * (retries_ + 1));
    if (free >= wanted)
      wanted = free + needed;
  }
  if (free >= wanted)
    return 0;
  asked_ = true;
  return wanted - free;
}

} // namespace terrace::actors
