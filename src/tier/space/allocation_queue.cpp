#include "tier/space/allocation_queue.hpp"

#include "tier/objects/tier_check.hpp"
#include "tier/space/let_pass.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace terrace {

namespace {
/// The number of requests for which room is made together. Making room for one at a time would cost more time
/// for messages than for the objects.
constexpr size_t together_max = 16;
/// The number of requests that are tried each time that the first must wait, in total and for each connection.
constexpr size_t tried_max = 256;
constexpr size_t tried_of_each = 8;
constexpr uint64_t ahead_part =
    4; ///< requests ahead of demand get 1/4 of the places, until others overtook them by 1/4 of the arena

bool is_ahead(const allocate_request& request) { return request.context && request.context->ahead; }
} // namespace

allocation_queue::allocation_queue(std::unique_ptr<allocator> space, uint64_t free_ahead_bytes,
                                   size_t waiting_max)
    : space_(std::move(space)), name_(space_->name()), free_ahead_bytes_(free_ahead_bytes),
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

size_t allocation_queue::waiting_of(const flow& owner) const {
  auto kept = kept_of_.find(owner.connection);
  return line_.waiting_of(owner) + ahead_.waiting_of(owner) + (kept == kept_of_.end() ? 0 : kept->second);
}

/// A connection may have as many waiting requests as places are left, so that no connection has them all.
bool allocation_queue::admits(const allocate_request& request) const {
  size_t places = is_ahead(request) ? waiting_max_ / ahead_part : waiting_max_;
  return waiting() < places && waiting_of(flow_of(request.context)) < places - waiting();
}

allocate_answer allocation_queue::too_many(const flow& owner) const {
  size_t own = waiting_of(owner);
  return {error{errc::busy, std::to_string(own) + " requests of this connection and " +
                                std::to_string(waiting() - own) +
                                " others wait for memory already; try again later"},
          {}};
}

void allocation_queue::allocate(const allocate_request& request, reply answer) {
  flow owner = flow_of(request.context);
  if (!space_) {
    if (!admits(request)) {
      answer(too_many(owner));
      return;
    }
    ++arrivals_kept_;
    ++kept_of_[owner.connection];
    assert(waiting() <= waiting_max_);
    kept_.emplace_back([this, request, answer = std::move(answer)] {
      --arrivals_kept_;
      allocate(request, answer);
    });
    return;
  }
  uint64_t physical = 0;
  for (uint64_t size : request.sizes)
    physical += size > space_->largest_possible() ? 0 : space_->physical_size(size);
  if (auto never = never_fits(request, physical)) {
    answer({std::move(*never), {}});
    return;
  }
  if (!admits(request)) {
    answer(too_many(owner));
    return;
  }
  if (is_ahead(request))
    ahead_.push(
        owner,
        {request, physical, ++arrived_, space_->usage().capacity_bytes / ahead_part, std::move(answer)},
        physical);
  else
    line_.push(owner, {request, physical, ++arrived_, physical, std::move(answer)}, physical);
  assert(waiting() <= waiting_max_);
  serve();
}

void allocation_queue::free(const std::vector<extent>& extents) {
  if (!space_) {
    kept_free_.insert(kept_free_.end(), extents.begin(), extents.end());
    return;
  }
  space_->free(extents);
  try_again();
}

check_space_answer allocation_queue::check(const check_space_request& request) const {
  check_space_answer answer;
  answer.lent = space_ == nullptr;
  if (!answer.lent)
    answer.differences = check_extents(*space_, *request.slice);
  answer.usage = usage();
  return answer;
}

void allocation_queue::grow(const grow_notice& notice) {
  if (!space_) {
    kept_.emplace_back([this, notice] { grow(notice); });
    return;
  }
  if (space_->grow(notice.bytes, notice.gap_bytes)) // the tier asks for as many bytes as the arena has
    try_again();
}

void allocation_queue::retire(extent range, std::function<void(retire_answer)> empty) {
  if (!space_) {
    kept_.emplace_back([this, range, empty] { retire(range, empty); });
    return;
  }
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
  auto never_served = [&](waiting_request& entry) {
    auto never = never_fits(entry.request, entry.physical_bytes);
    bool refused = never.has_value();
    if (refused)
      refuse(entry, std::move(*never));
    return refused;
  };
  line_.erase_if(never_served);
  ahead_.erase_if(never_served);
}

/// Returns the first request, or, if no room can be made for it now, the next one that may pass it.
const allocation_queue::waiting_request* allocation_queue::next_seeker() {
  auto& line = served_now();
  const waiting_request* first = line.front();
  if (first == nullptr || !failed_for(*first))
    return first;
  const waiting_request* found = nullptr;
  size_t tried = 0;
  line.for_each(
      [&](const waiting_request& entry) {
        if (!failed_for(entry) && entry.physical_bytes <= first->passing_left)
          found = &entry;
        return found == nullptr && ++tried < tried_max;
      },
      tried_of_each);
  return found;
}

/// Returns the first seeker, and the requests that can be combined with it: those of one extent, because an
/// arrangement for several extents need not leave room for another.
std::vector<room_seeker> allocation_queue::together() {
  std::vector<room_seeker> group;
  const waiting_request* first = next_seeker();
  if (first == nullptr)
    return group;
  group.push_back({first->number, first->request.sizes, first->request.context, first->request.tenant});
  if (first != served_now().front() || first->request.sizes.size() != 1)
    return group;
  uint64_t bytes = first->physical_bytes,
           bytes_max = space_->usage().capacity_bytes / 16; // nothing is evicted long before it must be
  auto inference_of = [](const auto& of) { return of.context ? of.context->inference : 0; };
  auto add = [&](const waiting_request& entry) {
    if (&entry == first)
      return true;
    bytes += entry.physical_bytes;
    if (entry.request.sizes.size() != 1 || inference_of(entry.request) != inference_of(first->request) ||
        entry.request.tenant != first->request.tenant || bytes > bytes_max)
      return false;
    group.push_back(
        {entry.number, {entry.request.sizes.front()}, entry.request.context, entry.request.tenant});
    return group.size() < together_max;
  };
  served_now().for_each(add, together_max);
  return group;
}

std::string allocation_queue::holders() const {
  std::string text = round_ ? round_->holders() : std::string();
  return text.empty() ? text : ": " + text;
}

error allocation_queue::ended(const waiting_request& waiting) const {
  errc why = waiting.request.context->ended.load();
  if (why == errc::deadline && failed_for(waiting)) // the request waited for memory that was not released
    why = errc::no_space;
  return {why, "the request ended while it waited for " + std::to_string(waiting.physical_bytes) +
                   " bytes of memory" + holders()};
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
  auto offered = [this](waiting_request& entry) { return offer(entry); };
  serve_line(line_, {tried_of_each, tried_max}, offered);
  refuse_impatient();
  if (line_.empty())
    serve_line(ahead_, {tried_of_each, tried_max}, offered);
  else if (!ahead_.empty() && failed_for(*line_.front()))
    refuse_ahead();
}

/// A request that may not wait is not kept behind a first one for which there is no room, and which it may
/// not pass. The first one may wait for objects that are released when the other is answered: those that a
/// tier above gives up, for example.
void allocation_queue::refuse_impatient() {
  const waiting_request* first = line_.front();
  if (first == nullptr || !failed_for(*first))
    return;
  auto stuck = [&, number = first->number, passing = first->passing_left](waiting_request& entry) {
    bool is = entry.number != number && !entry.request.may_wait && entry.physical_bytes > passing;
    if (is)
      refuse(entry, {errc::no_space, "others wait for memory, and nothing can be evicted" + holders()});
    return is;
  };
  line_.erase_if(stuck);
}

/// Requests of `bytes` bytes went before those that are ahead of demand.
void allocation_queue::overtaken(uint64_t bytes) {
  auto often_enough = [&](waiting_request& entry) {
    entry.passing_left -= std::min(entry.passing_left, bytes);
    if (entry.passing_left == 0)
      refuse(entry, {errc::busy, "others need the memory more urgently"});
    return entry.passing_left == 0;
  };
  ahead_.erase_if(often_enough);
}

void allocation_queue::refuse_ahead() {
  auto all = [&](waiting_request& entry) {
    refuse(entry, {errc::busy, "others wait for memory, and nothing can be evicted" + holders()});
    return true;
  };
  ahead_.erase_if(all);
}

/// Answers the request with extents, or with an error because waiting is of no use.
turn allocation_queue::offer(waiting_request& entry) {
  const allocate_request& request = entry.request;
  if (request.context && !request.context->live())
    return refuse(entry, ended(entry));
  if (entry.physical_bytes <= space_->usage().free_bytes) {
    if (auto extents = space_->allocate(request.sizes)) {
      assert(space_->usage().used_bytes <= space_->usage().capacity_bytes);
      failed_.erase(entry.number);
      uint64_t bytes = entry.physical_bytes;
      bool overtakes = !ahead_.empty() && !is_ahead(request);
      entry.answer({{}, std::move(*extents)});
      if (overtakes)
        overtaken(bytes);
      return turn::served;
    }
  }
  if (!failed_for(entry))
    return turn::waits;
  auto wanted = [&] { return std::to_string(entry.physical_bytes) + " bytes free" + holders(); };
  if (!request.may_wait)
    return refuse(entry, {errc::no_space, "nothing can be evicted to make " + wanted()});
  if (round_->only_leases_end(entry.physical_bytes, space_->usage().capacity_bytes))
    return refuse(entry, {errc::no_space, "only the end of leases can make " + wanted()});
  return turn::waits;
}

turn allocation_queue::refuse(waiting_request& entry, error why) {
  failed_.erase(entry.number);
  entry.answer({std::move(why), {}});
  return turn::ended;
}

void allocation_queue::sweep() {
  if (!space_)
    kept_.emplace_back([this] { sweep(); }); // sweeps again once the kept requests are queued
  auto over = [&](waiting_request& entry) {
    bool live = !entry.request.context || entry.request.context->live();
    if (!live)
      refuse(entry, ended(entry));
    return !live;
  };
  line_.erase_if(over);
  ahead_.erase_if(over);
  if (space_)
    serve();
}

uint64_t allocation_queue::room_bytes() const {
  uint64_t room = space_ ? space_->room_bytes() : lent_room_;
  return room - std::min(room, free_ahead(usage().capacity_bytes));
}

std::shared_ptr<eviction_round> allocation_queue::begin_round() {
  if (!round_)
    return nullptr;
  allocator_usage usage = space_->usage();
  if (!served_now().empty()) {
    auto seekers = together();
    if (seekers.empty())
      return nullptr;
    lent_usage_ = usage;
    lent_room_ = space_->room_bytes();
    round_->ask_for(std::move(seekers), std::move(space_));
    return std::move(round_);
  }
  uint64_t ahead = free_ahead(usage.capacity_bytes);
  if (usage.free_bytes >= ahead || round_->failed_for(0))
    return nullptr;
  round_->ask_ahead(ahead - usage.free_bytes);
  return std::move(round_);
}

void allocation_queue::end_round(std::shared_ptr<eviction_round> round) {
  assert(!round_ && round); // there is only one round
  round_ = std::move(round);
  if (auto number = round_->failed_number(); number != 0)
    failed_.insert(number);
  if (auto lent = round_->take_space())
    space_ = std::move(lent);
  space_->free(round_->take_freed());
  if (kept_free_.empty()) {
    serve();
  } else {
    space_->free(std::exchange(kept_free_, {})); // freed before the round counts as failed for anybody
    try_again();
  }
  kept_of_.clear();
  for (const auto& act : std::exchange(kept_, {}))
    act();
}

void allocation_queue::more_evictable() {
  if (round_)
    try_again();
  else
    failed_.clear(); // a round is in progress, and the tier knows
}

/// Requests for which no room could be made may have room now.
void allocation_queue::try_again() {
  failed_.clear();
  if (round_)
    round_->more_evictable();
  serve();
}

} // namespace terrace
