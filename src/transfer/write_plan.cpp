#include "transfer/write_plan.hpp"

#include "index/object_header.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace terrace {

namespace {
constexpr uint64_t hours_per_day = 24;
constexpr double seconds_per_day = 86'400;
} // namespace

write_budget::bucket write_budget::full(uint64_t capacity, double per_second, time_point now) {
  const auto bytes = static_cast<double>(capacity);
  return {bytes, per_second, bytes, now};
}

write_budget::write_budget(const write_rates& rates, time_point now) { set(rates, now); }

void write_budget::set(const write_rates& rates, time_point now) {
  if (rates.bytes_per_day != rates_.bytes_per_day)
    day_ = full(rates.bytes_per_day / hours_per_day,
                static_cast<double>(rates.bytes_per_day) / seconds_per_day, now);
  if (rates.bytes_per_second != rates_.bytes_per_second)
    second_ = full(rates.bytes_per_second, static_cast<double>(rates.bytes_per_second), now);
  rates_ = rates;
}

void write_budget::bucket::refill(time_point now) {
  const double seconds = std::chrono::duration<double>(now - filled).count();
  filled = now;
  put_back(seconds * per_second);
}

bool write_budget::take(uint64_t bytes, time_point now) {
  const auto wanted = static_cast<double>(bytes);
  day_.refill(now);
  second_.refill(now);
  if (!day_.has(wanted) || !second_.has(wanted))
    return false;
  day_.tokens -= wanted;
  second_.tokens -= wanted;
  return true;
}

void write_budget::give_back(uint64_t bytes) {
  day_.put_back(static_cast<double>(bytes));
  second_.put_back(static_cast<double>(bytes));
}

int64_t write_budget::left(time_point now) {
  int64_t least = INT64_MAX;
  for (bucket* each : {&day_, &second_}) {
    each->refill(now);
    if (each->capacity != 0)
      least = std::min(least, static_cast<int64_t>(each->tokens));
  }
  return least;
}

write_plan::write_plan(write_through_notice notice)
    : what_(std::move(notice)), bytes_(std::accumulate(what_.objects->payload_bytes.begin(),
                                                       what_.objects->payload_bytes.end(), uint64_t{0})) {
  // An object missing from the hold was never present: nothing to write.
  for (const object_place& place : what_.held->places())
    wanted_.push_back(place.present());
}

size_t write_plan::wanted() const {
  return static_cast<size_t>(std::count(wanted_.begin(), wanted_.end(), true));
}

uint64_t write_plan::refuse_from(size_t i) {
  const size_t before = refused_.size();
  for (; i < wanted_.size(); ++i)
    if (wanted_[i]) {
      wanted_[i] = false;
      refused_.push_back(to_entry_key(what_.objects->keys[i]));
    }
  return refused_.size() - before;
}

std::vector<entry_key> write_plan::names_of(const std::vector<size_t>& objects) const {
  std::vector<entry_key> names;
  for (size_t i : objects)
    names.push_back(to_entry_key(what_.objects->keys[i]));
  return names;
}

void write_plan::drop_replaced(const std::vector<bool>& current) {
  for (size_t i = 0; i < wanted_.size(); ++i)
    wanted_[i] = wanted_[i] && current[i];
}

void write_plan::omit_present(const object_bitmap& present) {
  for (size_t i = 0; i < wanted_.size(); ++i)
    wanted_[i] = wanted_[i] && !present.test(i);
}

admit_request write_plan::admission(tier_kind tier, admission_rule rule, uint64_t room_bytes) {
  admit_request request;
  request.tier = tier;
  request.rule = rule;
  asked_.clear();
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (!wanted_[i])
      continue;
    uint64_t bytes = physical_bytes_for(what_.objects->payload_bytes[i]);
    if (asked_.empty() && bytes <= room_bytes) {
      room_bytes -= bytes;
      continue;
    }
    asked_.push_back(i);
    request.entries.push_back({to_entry_key(what_.objects->keys[i]), what_.objects->parents[i], bytes});
  }
  return request;
}

uint64_t write_plan::admitted(size_t count) { return count < asked_.size() ? refuse_from(asked_[count]) : 0; }

uint64_t write_plan::pay(write_budget& budget, write_budget::time_point now) {
  paid_.resize(wanted_.size());
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (!wanted_[i])
      continue;
    uint64_t bytes = physical_bytes_for(what_.objects->payload_bytes[i]);
    if (!budget.take(bytes, now))
      return refuse_from(i);
    paid_[i] = bytes;
  }
  return 0;
}

void write_plan::return_unspent(write_budget& budget) const {
  for (uint64_t bytes : paid_)
    budget.give_back(bytes);
}

acquire_request write_plan::space() const {
  acquire_request request;
  request.objects = what_.objects;
  request.may_wait = false;
  request.note_access = false;
  request.may_fill = wanted_;
  return request;
}

passage::plan write_plan::journey(tier_kind from, direction way, const segmented_arena& memory,
                                  const context_ptr& context) const {
  passage::plan plan;
  plan.space = what_.space;
  plan.objects = what_.objects;
  plan.from = {{from, what_.held}};
  plan.way = way;
  plan.memory = &memory;
  plan.context = context;
  plan.name = "write";
  plan.hold = way == direction::into_host;
  plan.checksums = what_.checksums;
  return plan;
}

void write_plan::add_passage(const passage& over) {
  others_write_ = over.others_write();
  const auto& states = over.acquired().states;
  for (size_t i = 0; i < paid_.size() && i < states.size(); ++i)
    if (states[i] == acquired_state::reserved)
      paid_[i] = 0; // it is spent
}

write_through_notice write_plan::onward(const passage& over) const {
  std::vector<object_place> places(objects());
  auto place = over.published()->places().begin();
  for (size_t i : over.objects())
    places[i] = *place++;
  return {what_.space, what_.objects, part_of(over.published(), std::move(places)), {}};
}

void write_plan::end() {
  what_.held.reset();
  what_.credit.reset(); // whoever is told may ask for the next one
  if (auto ended = std::exchange(what_.ended, {}))
    ended(std::move(told_));
}

} // namespace terrace
