#include "memory/paged_allocator.hpp"

#include "memory/allocator_registry.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

result<std::unique_ptr<allocator>> paged_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  uint64_t boundary = options.boundary_bytes == 0 ? options.capacity_bytes : options.boundary_bytes;
  uint64_t limit = std::min(boundary, options.capacity_bytes);
  if (options.slot_bytes == 0 || options.slot_bytes > limit)
    return fail(errc::bad_request, "slot_bytes is " + std::to_string(options.slot_bytes) +
                                       ": a paged arena expects the size of its objects, 1 to " +
                                       std::to_string(limit));
  uint64_t slot =
      (options.slot_bytes + options.alignment_bytes - 1) / options.alignment_bytes * options.alignment_bytes;
  uint64_t per_boundary = boundary / slot;
  uint64_t slots =
      options.capacity_bytes / boundary * per_boundary + options.capacity_bytes % boundary / slot;
  return std::unique_ptr<allocator>(new paged_allocator(slot, boundary, per_boundary, slots));
}

paged_allocator::paged_allocator(uint64_t slot_bytes, uint64_t boundary_bytes, uint64_t slots_per_boundary,
                                 uint64_t slots)
    : slot_bytes_(slot_bytes), boundary_bytes_(boundary_bytes), slots_per_boundary_(slots_per_boundary),
      slots_(slots) {}

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
  if (sizes.size() > slots_ - live_)
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

void paged_allocator::free(std::span<const extent> extents) {
  for (const extent& e : extents) {
    uint64_t slot = slot_at(e.offset);
    assert(slot < requested_.size() && requested_[slot] > 0 && offset_of(slot) == e.offset &&
           e.size == slot_bytes_ && "freed twice, or never allocated");
    requested_bytes_ -= requested_[slot];
    requested_[slot] = 0;
    freed_.push_back(slot);
  }
  live_ -= extents.size();
}

allocator_usage paged_allocator::usage() const {
  uint64_t free_slots = slots_ - live_;
  return {.capacity_bytes = slots_ * slot_bytes_,
          .used_bytes = live_ * slot_bytes_,
          .requested_bytes = requested_bytes_,
          .free_bytes = free_slots * slot_bytes_,
          .largest_free_run = free_slots > 0 ? slot_bytes_ : 0,
          .free_runs = free_slots,
          .allocations = live_};
}

} // namespace terrace
