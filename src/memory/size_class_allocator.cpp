#include "memory/size_class_allocator.hpp"

#include "memory/allocator_registry.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace terrace {

namespace {

constexpr uint64_t slots_max = 64;       // `free_slots` has one bit for each
constexpr uint64_t objects_per_slot = 4; // objects of the class per slot of a new slab

} // namespace

result<std::unique_ptr<allocator>> size_class_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  return std::unique_ptr<allocator>(new size_class_allocator(options));
}

size_class_allocator::size_class_allocator(const allocator_options& options)
    : arena_allocator(options), loose_(options.boundary_bytes) {
  loose_.give({options.reserved_bytes, options.capacity_bytes - options.reserved_bytes});
}

std::optional<extent> size_class_allocator::take_one(uint64_t requested, bool first_fit) {
  uint64_t physical = physical_size(requested);
  size_class& group = classes_[physical];
  extent made{0, physical};
  slab_id id = no_slab;
  if (!first_fit && (!group.open.empty() || open_slab(group, physical))) {
    id = group.open.back().second;
    slab& s = slabs_[id];
    made.offset = s.offset + static_cast<uint64_t>(std::countr_zero(s.free_slots)) * physical;
    s.free_slots &= s.free_slots - 1;
    if (s.free_slots == 0)
      group.open.pop_back();
  } else if (auto run = first_fit ? std::nullopt : loose_.first_fit(physical)) {
    made.offset = run->offset;
    loose_.take(made);
  } else if (auto cut = space_.runs().first_fit(physical)) {
    made.offset = cut->offset;
    dissolve_slabs_in(made);
    loose_.take(made);
  } else {
    if (group.live == 0)
      classes_.erase(physical);
    return std::nullopt;
  }
  ++group.live;
  space_.take_run(made);
  space_.add(made, requested, id);
  return made;
}

bool size_class_allocator::open_slab(size_class& group, uint64_t slot_bytes) {
  uint64_t slots = std::bit_floor(std::min(group.live / objects_per_slot, slots_max));
  for (; slots >= 2; slots /= 2) {
    if (slots * slot_bytes > loose_.largest())
      continue;
    slab made{loose_.first_fit(slots * slot_bytes)->offset, slot_bytes, 0, &group,
              static_cast<uint32_t>(slots)};
    made.free_slots = made.all();
    loose_.take(made.range());
    slab_id id = static_cast<slab_id>(slabs_.size());
    if (spare_.empty()) {
      slabs_.push_back(made);
    } else {
      id = spare_.back();
      spare_.pop_back();
      slabs_[id] = made;
    }
    slab_at_.emplace(made.offset, id);
    open(made, id);
    return true;
  }
  return false;
}

void size_class_allocator::open(const slab& s, slab_id id) {
  size_class& group = *s.group;
  auto where = std::lower_bound(group.open.begin(), group.open.end(), s.offset,
                                [](const auto& entry, uint64_t offset) { return entry.first > offset; });
  group.open.insert(where, {s.offset, id});
}

void size_class_allocator::close(const slab& s) {
  size_class& group = *s.group;
  auto where = std::lower_bound(group.open.begin(), group.open.end(), s.offset,
                                [](const auto& entry, uint64_t offset) { return entry.first > offset; });
  if (where != group.open.end() && where->first == s.offset)
    group.open.erase(where);
}

void size_class_allocator::forget_slab(slab_id which) {
  slab& s = slabs_[which];
  close(s);
  slab_at_.erase(s.offset);
  spare_.push_back(which);
}

void size_class_allocator::dissolve_slabs_in(extent range) {
  uint64_t end = range.offset + range.size;
  auto at = slab_at_.upper_bound(range.offset);
  if (at != slab_at_.begin()) // the previous slab may extend into the range
    --at;
  while (at != slab_at_.end() && at->first < end) {
    slab_id which = (at++)->second;
    slab s = slabs_[which];
    if (s.offset + s.range().size <= range.offset)
      continue;
    for (uint32_t i = 0; i < s.slots; ++i) {
      extent slot{s.offset + i * s.slot_bytes, s.slot_bytes};
      if (s.free_slots >> i & 1)
        loose_.give(slot);
      else
        space_.find(slot.offset)->tag = no_slab;
    }
    forget_slab(which);
  }
}

void size_class_allocator::adopted(std::span<const extent> extents) {
  for (const extent& e : extents) {
    dissolve_slabs_in(e);
    loose_.take(e);
    ++classes_[e.size].live;
  }
}

void size_class_allocator::free(std::span<const extent> extents) {
  for (const extent& e : extents) {
    space_.give_run(e);
    auto gone = space_.remove(e);
    if (gone.tag != no_slab) {
      slab& s = slabs_[gone.tag];
      size_class& group = *s.group;
      --group.live;
      if (s.free_slots == 0)
        open(s, gone.tag);
      s.free_slots |= uint64_t{1} << ((e.offset - s.offset) / s.slot_bytes);
      if (s.free_slots == s.all()) {
        extent range = s.range();
        forget_slab(gone.tag);
        loose_.give(range);
        if (group.live == 0)
          classes_.erase(e.size);
      }
      continue;
    }
    if (!space_.any_retired())
      loose_.give(e);
    else
      for (const extent& part : space_.usable(e))
        loose_.give(part);
    auto of = classes_.find(e.size);
    if (--of->second.live == 0)
      classes_.erase(of);
  }
}

void size_class_allocator::grown(extent added) { loose_.give(added); }

void size_class_allocator::retired(extent range) {
  dissolve_slabs_in(range);
  for (const extent& part : loose_.within(range))
    loose_.take(part);
}

} // namespace terrace
