// Slots of equal size: every operation is O(1) without fragmentation, for arenas whose objects have one size.
#pragma once

#include "memory/allocator.hpp"

namespace terrace {

/// The arena is divided into slots of `slot_bytes` (rounded up to the alignment). No slot crosses a boundary,
/// so bytes between the last slot before a boundary and the boundary, and after the last slot, are never used
/// and not part of `usage().capacity_bytes`. An object takes one slot. Slots never used before are allocated
/// first, in address order, then the most recently freed slot.
class paged_allocator : public allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "paged"; }
  result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) override;
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) override;
  void free(std::span<const extent> extents) override;
  uint64_t physical_size(uint64_t) const override { return slot_bytes_; }
  uint64_t largest_possible() const override { return slots_ > withdrawn_ ? slot_bytes_ : 0; }
  allocator_usage usage() const override;
  void expect(uint64_t) override {} ///< every slot is one object
  using allocator::grow;
  result<void> grow(uint64_t bytes, uint64_t gap_bytes) override;
  result<void> retire(extent range) override;
  uint64_t used_in(extent range) const override;
  uint64_t live_size(uint64_t offset) const override;
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates) override;

 private:
  paged_allocator(const allocator_options& options, uint64_t slot_bytes);

  uint64_t offset_of(uint64_t slot) const;
  uint64_t slot_at(uint64_t offset) const;
  uint64_t slots_before(uint64_t offset) const; ///< the number of whole slots that end at or before `offset`
  bool retired(const extent& e) const;
  void withdraw(extent range); ///< removes the free slots of `range` from the capacity
  template <class F>
  void for_slots_in(extent range, F&& f) const;

  allocator_options options_;
  uint64_t slot_bytes_;
  uint64_t boundary_bytes_; ///< the stride between groups of whole slots
  uint64_t slots_per_boundary_;
  uint64_t end_;
  uint64_t slots_;                  ///< including withdrawn ones
  uint64_t withdrawn_ = 0;          ///< retired and free
  std::vector<extent> retired_;     ///< retired ranges, and gaps
  std::vector<uint64_t> requested_; ///< the requested size of each slot that was ever used; 0: free
  std::vector<uint64_t> freed_;     ///< slots to reuse, the last one first
  uint64_t live_ = 0;
  uint64_t requested_bytes_ = 0;
};

} // namespace terrace
