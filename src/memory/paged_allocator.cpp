#include "memory/paged_allocator.hpp"

#include "memory/allocator_registry.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

result<std::unique_ptr<allocator>> paged_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  if (options.reserved_bytes != 0)
    return fail(errc::bad_request, "reserved_bytes is " + std::to_string(options.reserved_bytes) +
                                       ": expected 0, a paged arena has all of its bytes to itself");
  uint64_t boundary = options.boundary_bytes == 0 ? options.capacity_bytes : options.boundary_bytes;
  uint64_t limit = std::min(boundary, options.capacity_bytes);
  if (options.slot_bytes == 0 || options.slot_bytes > limit)
    return fail(errc::bad_request, "slot_bytes is " + std::to_string(options.slot_bytes) +
                                       ": a paged arena expects the size of its objects, 1 to " +
                                       std::to_string(limit));
  uint64_t slot =
      (options.slot_bytes + options.alignment_bytes - 1) / options.alignment_bytes * options.alignment_bytes;
  return std::unique_ptr<allocator>(new paged_allocator(options, slot));
}

paged_allocator::paged_allocator(const allocator_options& options, uint64_t slot_bytes)
    : options_(options), slot_bytes_(slot_bytes),
      boundary_bytes_(options.boundary_bytes == 0 ? uint64_t{1} << 63 : options.boundary_bytes),
      slots_per_boundary_(boundary_bytes_ / slot_bytes), end_(options.capacity_bytes),
      slots_(slots_before(end_)) {}

uint64_t paged_allocator::slots_before(uint64_t offset) const {
  return offset / boundary_bytes_ * slots_per_boundary_ +
         std::min(offset % boundary_bytes_ / slot_bytes_, slots_per_boundary_);
}

uint64_t paged_allocator::offset_of(uint64_t slot) const {
  return slot / slots_per_boundary_ * boundary_bytes_ + slot % slots_per_boundary_ * slot_bytes_;
}

uint64_t paged_allocator::slot_at(uint64_t offset) const {
  return offset / boundary_bytes_ * slots_per_boundary_ + offset % boundary_bytes_ / slot_bytes_;
}

result<std::vector<extent>> paged_allocator::allocate(std::span<const uint64_t> sizes) {
  auto total = total_physical(*this, sizes);
  if (!total)
    return tl::unexpected(total.error());
  if (sizes.size() > slots_ - withdrawn_ - live_)
    return fail_no_space(*this, sizes.size(), *total);
  std::vector<extent> taken;
  taken.reserve(sizes.size());
  for (uint64_t bytes : sizes) {
    uint64_t slot = requested_.size();
    if (slot < slots_) {
      requested_.push_back(bytes);
    } else {
      slot = freed_.back();
      freed_.pop_back();
      requested_[slot] = bytes;
    }
    requested_bytes_ += bytes;
    taken.push_back({offset_of(slot), slot_bytes_});
  }
  live_ += sizes.size();
  return taken;
}

result<void> paged_allocator::adopt(std::span<const extent> extents, std::span<const uint64_t> requested) {
  uint64_t used = requested_.size();
  size_t taken = 0;
  for (; taken < extents.size(); ++taken) {
    const extent& e = extents[taken];
    uint64_t slot = slot_at(e.offset);
    if (slot >= slots_ || offset_of(slot) != e.offset || e.size != slot_bytes_ || requested[taken] == 0 ||
        requested[taken] > slot_bytes_ || retired(e) || (slot < requested_.size() && requested_[slot] != 0))
      break;
    if (slot >= requested_.size())
      requested_.resize(slot + 1);
    requested_[slot] = requested[taken];
  }
  bool all = taken == extents.size();
  for (size_t i = 0; i < taken; ++i)
    if (all)
      requested_bytes_ += requested[i];
    else
      requested_[slot_at(extents[i].offset)] = 0;
  live_ += all ? taken : 0;
  // Slots up to the last adopted one now count as used before; the free ones among them are reused lowest
  // first.
  std::erase_if(freed_, [&](uint64_t slot) { return requested_[slot] != 0; });
  std::vector<uint64_t> skipped;
  for (uint64_t slot = requested_.size(); slot > used; --slot)
    if (requested_[slot - 1] == 0)
      skipped.push_back(slot - 1);
  freed_.insert(freed_.end(), skipped.begin(), skipped.end());
  if (!all)
    return fail_place(extents[taken], requested[taken]);
  return {};
}

void paged_allocator::free(std::span<const extent> extents) {
  for (const extent& e : extents) {
    uint64_t slot = slot_at(e.offset);
    assert(slot < requested_.size() && requested_[slot] > 0 && offset_of(slot) == e.offset &&
           e.size == slot_bytes_ && "freed twice, or never allocated");
    requested_bytes_ -= requested_[slot];
    requested_[slot] = 0;
    if (retired(e))
      ++withdrawn_;
    else
      freed_.push_back(slot);
  }
  live_ -= extents.size();
}

allocator_usage paged_allocator::usage() const {
  uint64_t free_slots = slots_ - withdrawn_ - live_;
  return {.capacity_bytes = (slots_ - withdrawn_) * slot_bytes_,
          .used_bytes = live_ * slot_bytes_,
          .requested_bytes = requested_bytes_,
          .free_bytes = free_slots * slot_bytes_,
          .largest_free_run = free_slots > 0 ? slot_bytes_ : 0,
          .free_runs = free_slots,
          .allocations = live_,
          .smallest_bytes = slot_bytes_,
          .whole_bytes = free_slots * slot_bytes_};
}

result<void> paged_allocator::grow(uint64_t bytes, uint64_t gap_bytes) {
  if (auto valid = validate_growth(options_, end_, bytes, gap_bytes); !valid)
    return valid;
  extent gap{end_, gap_bytes};
  end_ += gap_bytes + bytes;
  slots_ = slots_before(end_);
  if (gap.size > 0)
    withdraw(gap);
  return {};
}

uint64_t paged_allocator::live_size(uint64_t offset) const {
  uint64_t slot = slot_at(offset);
  bool live = slot < requested_.size() && requested_[slot] != 0 && offset_of(slot) == offset;
  return live ? slot_bytes_ : 0;
}

bool paged_allocator::retired(const extent& e) const {
  return std::any_of(retired_.begin(), retired_.end(), [&](const extent& r) {
    return e.offset < r.offset + r.size && r.offset < e.offset + e.size;
  });
}

template <class F>
void paged_allocator::for_slots_in(extent range, F&& f) const {
  uint64_t end = range.offset + range.size;
  for (uint64_t slot = std::min(slot_at(range.offset), slots_); slot < slots_ && offset_of(slot) < end;
       ++slot)
    if (offset_of(slot) + slot_bytes_ > range.offset)
      f(slot);
}

result<void> paged_allocator::retire(extent range) {
  uint64_t end = range.offset + range.size;
  bool ends_there = end == end_ || retired({end, 1});
  if (auto valid = validate_segments(options_, range, end_, ends_there); !valid)
    return valid;
  if (retired(range))
    return fail_retired_before(range);
  withdraw(range);
  return {};
}

void paged_allocator::withdraw(extent range) {
  // Slots that were never used are at the end of the arena; from here on, those before the end of `range`
  // count as used.
  uint64_t used = requested_.size();
  for_slots_in(range, [&](uint64_t slot) { requested_.resize(std::max(requested_.size(), slot + 1)); });
  for (uint64_t slot = requested_.size(); slot > used; --slot)
    freed_.push_back(slot - 1);
  std::erase_if(freed_, [&](uint64_t slot) {
    uint64_t offset = offset_of(slot);
    return offset < range.offset + range.size && range.offset < offset + slot_bytes_;
  });
  for_slots_in(range, [&](uint64_t slot) {
    withdrawn_ += requested_[slot] == 0 && !retired({offset_of(slot), slot_bytes_}) ? 1 : 0;
  });
  retired_.push_back(range);
}

uint64_t paged_allocator::used_in(extent range) const {
  uint64_t used = 0;
  for_slots_in(range, [&](uint64_t slot) {
    used += slot < requested_.size() && requested_[slot] > 0 ? slot_bytes_ : 0;
  });
  return used;
}

std::optional<std::vector<size_t>> paged_allocator::choose(std::span<const uint64_t> sizes,
                                                           std::span<const extent> candidates) {
  uint64_t free_slots = slots_ - withdrawn_ - live_;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < candidates.size() && free_slots + chosen.size() < sizes.size(); ++i)
    if (!retired(candidates[i]))
      chosen.push_back(i);
  if (free_slots + chosen.size() < sizes.size())
    return std::nullopt;
  return chosen;
}

} // namespace terrace
