#include "transfer/write_passage.hpp"

#include "index/object_header.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace terrace {

write_passage::write_passage(write_through_notice notice, passage_way way)
    : what_(std::move(notice)), bytes_(std::accumulate(what_.objects->payload_bytes.begin(),
                                                       what_.objects->payload_bytes.end(), uint64_t{0})),
      way_(way) {
  // An object missing from the hold was never present: nothing to write.
  for (const object_place& place : what_.held->places())
    wanted_.push_back(place.present());
}

size_t write_passage::wanted() const {
  return static_cast<size_t>(std::count(wanted_.begin(), wanted_.end(), true));
}

uint64_t write_passage::refuse_from(size_t i) {
  auto begin = wanted_.begin() + static_cast<ptrdiff_t>(i);
  auto refused = static_cast<uint64_t>(std::count(begin, wanted_.end(), true));
  std::fill(begin, wanted_.end(), false);
  return refused;
}

void write_passage::drop_replaced(const std::vector<bool>& current) {
  for (size_t i = 0; i < wanted_.size(); ++i)
    wanted_[i] = wanted_[i] && current[i];
}

void write_passage::omit_present(const object_bitmap& present) {
  for (size_t i = 0; i < wanted_.size(); ++i)
    wanted_[i] = wanted_[i] && !present.test(i);
}

admit_request write_passage::admission(tier_kind tier, admission_rule rule, uint64_t room_bytes) {
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

uint64_t write_passage::admitted(size_t count) {
  return count < asked_.size() ? refuse_from(asked_[count]) : 0;
}

uint64_t write_passage::pay(write_budget& budget, write_budget::time_point now) {
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

void write_passage::return_unspent(write_budget& budget) const {
  for (uint64_t bytes : paid_)
    budget.give_back(bytes);
}

acquire_request write_passage::space() const {
  acquire_request request;
  request.objects = what_.objects;
  request.may_wait = false;
  request.note_access = false;
  request.may_fill = wanted_;
  return request;
}

void write_passage::take_space(const acquire_answer& acquired, const segmented_arena& memory) {
  memory_ = &memory;
  const auto& held = what_.held->places();
  for (size_t i = 0; i < acquired.states.size(); ++i) {
    others_write_ = others_write_ || acquired.states[i] == acquired_state::pending;
    if (acquired.states[i] != acquired_state::reserved || !held[i].present())
      continue;
    objects_.push_back({i, held[i], acquired.places[i]});
    if (!paid_.empty())
      paid_[i] = 0; // it is spent
  }
}

confirm_request write_passage::confirmation() const {
  confirm_request request;
  for (const writing& one : objects_)
    request.ids.push_back(one.from.id);
  return request;
}

void write_passage::drop_cleared(const std::vector<bool>& present) {
  size_t kept = 0;
  for (size_t i = 0; i < objects_.size(); ++i)
    if (present[i])
      objects_[kept++] = objects_[i];
  objects_.resize(kept);
}

namespace {

/// A mover or a copier may let go of this after it has answered, on another thread. Until then a check sees work in progress.
struct written_bytes {
  work_mark work; // first, to end last
  hold_ptr held;
  reservation_ptr reserved;
};

} // namespace

moved_objects write_passage::moved(const reservation_ptr& reserved, const context_ptr& context) const {
  bool out = way_ == passage_way::out_of_host;
  moved_objects request;
  request.in = what_.in;
  for (const writing& one : objects_) {
    moved_object object;
    object.key = what_.objects->keys[one.object];
    object.place = out ? one.to : one.from;
    object.memory = memory_->at(out ? one.from.offset : one.to.offset);
    if (!what_.checksums.empty())
      object.checksum = what_.checksums[one.object];
    request.objects.push_back(object);
  }
  request.context = context;
  auto bytes = std::make_shared<written_bytes>();
  bytes->work.begin();
  bytes->held = what_.held;
  bytes->reserved = reserved;
  request.owners = {std::move(bytes)};
  return request;
}

write_request write_passage::write(const reservation_ptr& reserved, const context_ptr& context) const {
  assert(way_ == passage_way::out_of_host);
  return {moved(reserved, context)};
}

read_request write_passage::read(const reservation_ptr& reserved, const context_ptr& context) const {
  assert(way_ == passage_way::into_host);
  return {moved(reserved, context)};
}

write_passage::result write_passage::written(const std::vector<move_outcome>& outcomes) const {
  result sum;
  sum.complete.in = what_.in;
  for (size_t i = 0; i < objects_.size(); ++i) {
    if (outcomes[i] == move_outcome::done) {
      sum.bytes += objects_[i].to.payload_bytes;
      sum.complete.places.push_back(objects_[i].to);
    } else {
      ++(outcomes[i] == move_outcome::away ? sum.away : sum.failed);
      sum.stalled = sum.stalled || outcomes[i] == move_outcome::stalled;
    }
  }
  return sum;
}

write_through_notice write_passage::onward(const result& written, const hold_ptr& held) const {
  std::vector<object_place> places(objects());
  const auto& done = written.complete.places;
  size_t next = 0;
  for (const writing& one : objects_)
    if (next < done.size() && one.to.id == done[next].id)
      places[one.object] = held->places()[next++];
  return {what_.in, what_.objects, part_of(held, std::move(places)), {}};
}

void write_passage::end() {
  what_.held.reset();
  what_.credit.reset(); // whoever is told may ask for the next one
  if (auto ended = std::exchange(what_.ended, {}))
    ended(std::move(told_));
}

} // namespace terrace
