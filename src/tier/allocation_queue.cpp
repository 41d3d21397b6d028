#include "tier/allocation_queue.hpp"

#include <algorithm>
#include <numeric>

namespace terrace {

namespace {
/// Who is asked for room for one at a time spends more time on messages than on the objects.
constexpr size_t together_max = 16;
} // namespace

allocation_queue::allocation_queue(std::unique_ptr<allocator> space, uint64_t free_ahead_bytes,
                                   size_t waiting_max)
    : space_(std::move(space)), free_ahead_bytes_(free_ahead_bytes),
      first_capacity_(space_->usage().capacity_bytes), waiting_max_(waiting_max) {}

uint64_t allocation_queue::free_ahead(uint64_t capacity) const {
  if (capacity == first_capacity_)
    return free_ahead_bytes_;
  return static_cast<uint64_t>(static_cast<double>(free_ahead_bytes_) * static_cast<double>(capacity) /
                               static_cast<double>(first_capacity_));
}

std::optional<error> allocation_queue::never_fits(const allocate_request& request, uint64_t physical) const {
  for (uint64_t size : request.sizes)
    if (size == 0 || size > space_->largest_possible())
      return error{errc::bad_request, "an object of " + std::to_string(size) +
                                          " bytes does not fit the arena, whose "
                                          "largest extent is " +
                                          std::to_string(space_->largest_possible()) + " bytes"};
  if (physical > space_->usage().capacity_bytes)
    return error{errc::no_space, "the request needs " + std::to_string(physical) +
                                     " bytes at once, the arena has " +
                                     std::to_string(space_->usage().capacity_bytes)};
  return std::nullopt;
}

void allocation_queue::allocate(const allocate_request& request, reply answer) {
  uint64_t physical = 0;
  for (uint64_t size : request.sizes)
    physical += size > space_->largest_possible() ? 0 : space_->physical_size(size);
  if (auto never = never_fits(request, physical)) {
    answer({std::move(*never), {}});
    return;
  }
  if (line_.size() >= waiting_max_) {
    answer({error{errc::busy,
                  std::to_string(line_.size()) + " requests wait for memory already; try again later"},
            {}});
    return;
  }
  line_.push_back({request, physical, ++arrived_, std::move(answer)});
  serve();
}

void allocation_queue::free(const std::vector<extent>& extents) {
  space_->free(extents);
  serve();
}

void allocation_queue::room_made(const terrace::room_made& made) {
  asked_ = false;
  exhausted_ = made.exhausted;
  exhausted_number_ = made.for_one ? std::optional(chosen_for_) : std::nullopt;
  holders_ = made.holders;
  if (!made.extents.empty())
    space_->free(made.extents);
  serve();
}

void allocation_queue::grow(const grow_notice& notice) {
  if (space_->grow(notice.bytes, notice.gap_bytes)) // its owner asks for what the arena has
    serve();
}

void allocation_queue::retire(extent range, std::function<void(retire_answer)> empty) {
  auto gone = space_->retire(range);
  if (!gone) {
    empty({gone.error()});
    return;
  }
  retiring_.push_back({range, std::move(empty)});
  refuse_what_never_fits();
  serve();
}

void allocation_queue::refuse_what_never_fits() {
  std::erase_if(line_, [&](waiting_request& entry) {
    auto never = never_fits(entry.request, entry.physical_bytes);
    if (never)
      entry.answer({std::move(*never), {}});
    return never.has_value();
  });
}

const allocation_queue::waiting_request* allocation_queue::head() const {
  for (const waiting_request& entry : line_)
    if (entry.request.may_evict)
      return &entry;
  return nullptr;
}

/// The head, and those for which room can be made with it: of one extent each, for one arrangement of several need not leave
/// room for another.
std::vector<const allocation_queue::waiting_request*> allocation_queue::together() const {
  std::vector<const waiting_request*> group;
  uint64_t bytes = 0, bytes_max = space_->usage().capacity_bytes / 16; // nobody leaves long before it must
  auto inference_of = [](const waiting_request& entry) {
    return entry.request.context ? entry.request.context->inference : 0;
  };
  for (const waiting_request& entry : line_) {
    if (!entry.request.may_evict)
      continue;
    bytes += entry.physical_bytes;
    if (!group.empty() && (group.front()->request.sizes.size() != 1 || entry.request.sizes.size() != 1 ||
                           inference_of(entry) != inference_of(*group.front()) || bytes > bytes_max))
      break;
    group.push_back(&entry);
    if (group.size() == together_max)
      break;
  }
  return group;
}

choose_answer allocation_queue::choose(const std::vector<extent>& candidates) {
  serve(); // what waits after this does not fit
  choose_answer answer;
  const waiting_request* first = head();
  answer.waits = first != nullptr;
  if (first) {
    chosen_for_ = first->number;
    std::vector<uint64_t> sizes;
    for (const waiting_request* each : together())
      if (each->number <= asked_up_to_ || each == first)
        sizes.insert(sizes.end(), each->request.sizes.begin(), each->request.sizes.end());
    auto chosen = space_->choose(sizes, candidates);
    if (!chosen && sizes.size() > first->request.sizes.size())
      chosen = space_->choose(first->request.sizes, candidates);
    if (chosen)
      answer.chosen = std::move(*chosen);
  }
  return answer;
}

error allocation_queue::ended(const waiting_request& waiting) const {
  errc why = waiting.request.context->ended.load();
  if (why == errc::deadline && exhausted_for(waiting)) // the wait was for memory that nobody gave back
    why = errc::no_space;
  return {why, "the request ended while it waited for " + std::to_string(waiting.physical_bytes) +
                   " bytes of memory" + (holders_.empty() ? "" : ": " + holders_)};
}

void allocation_queue::serve() {
  auto emptied = std::erase_if(retiring_, [&](retiring& one) {
    bool left = space_->used_in(one.range) == 0;
    if (left)
      one.empty({});
    return left;
  });
  if (emptied != 0)
    refuse_what_never_fits();
  for (auto entry = line_.begin(); entry != line_.end();) {
    const allocate_request& request = entry->request;
    if (request.context && !request.context->live()) {
      entry->answer({ended(*entry), {}});
    } else if (auto extents = space_->allocate(request.sizes)) {
      entry->answer({{}, std::move(*extents)});
    } else if (!request.may_wait && (!request.may_evict || exhausted_for(*entry))) {
      entry->answer({error{errc::no_space, (request.may_evict ? "nothing can be evicted to make "
                                                              : "nothing may be evicted to make ") +
                                               std::to_string(entry->physical_bytes) + " bytes free" +
                                               (holders_.empty() ? "" : ": " + holders_)},
                     {}});
    } else if (!request.may_evict) {
      ++entry; // whoever may evict passes it
      continue;
    } else {
      return;
    }
    entry = line_.erase(entry);
  }
}

void allocation_queue::sweep() {
  std::deque<waiting_request> kept;
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

uint64_t allocation_queue::room_bytes() const {
  uint64_t room = space_->room_bytes();
  return room - std::min(room, free_ahead(space_->usage().capacity_bytes));
}

std::optional<room_request> allocation_queue::room_wanted() {
  const waiting_request* first = head();
  if (asked_ || (first ? exhausted_for(*first) : exhausted_ && !exhausted_number_))
    return std::nullopt;
  auto usage = space_->usage();
  uint64_t free = usage.free_bytes, ahead = free_ahead(usage.capacity_bytes);
  room_request wanted;
  if (first) {
    for (const waiting_request* each : together()) {
      wanted.needed += each->physical_bytes;
      asked_up_to_ = each->number;
    }
    wanted.inference = first->request.context ? first->request.context->inference : 0;
    wanted.bytes = std::max(wanted.needed, free) - free;
  } else if (free < ahead) {
    wanted.bytes = ahead - free;
  } else {
    return std::nullopt;
  }
  asked_ = true;
  return wanted;
}

} // namespace terrace
