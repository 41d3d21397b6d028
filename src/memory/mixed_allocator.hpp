// Two allocators in one arena: small objects by `buffer`, all others by `size_class`.
#pragma once

#include "memory/allocator.hpp"

namespace terrace {

/// The first `small_percent` of the arena are for objects of at most `small_max_bytes` (physical), so that they never lie
/// between large ones. Small objects for which there is no room there go where the large ones are; large ones never come
/// into the area of the small. A batch keeps its small objects together in one of the two areas if it can. The area of the
/// small keeps its size when the arena grows.
class mixed_allocator : public allocator {
 public:
  /// Errors: `bad_request` for a share that leaves one of the areas empty.
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "mixed"; }
  result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) override;
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) override;
  void free(std::span<const extent> extents) override;
  uint64_t physical_size(uint64_t bytes) const override { return large_->physical_size(bytes); }
  uint64_t largest_possible() const override;
  allocator_usage usage() const override;
  void expect(uint64_t smallest_bytes) override;
  using allocator::grow;
  result<void> grow(uint64_t bytes, uint64_t gap_bytes) override;
  result<void> retire(extent range) override;
  uint64_t used_in(extent range) const override;
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates) override;

 private:
  mixed_allocator(const allocator_options& options, uint64_t small_end);

  bool in_small_area(const extent& e) const { return e.offset < small_end_; }
  bool is_small(uint64_t bytes) const { return physical_size(bytes) <= small_limit(); }
  uint64_t small_limit() const;

  /// Those of `which` (indices of `sizes`) go into `area`, all or none; their places into `taken`.
  bool place(allocator& area, std::span<const uint64_t> sizes, std::span<const size_t> which,
             std::vector<extent>& taken);
  void count_alike(); ///< after every change: both areas count whole objects of one size

  allocator_options options_;
  uint64_t small_end_;
  uint64_t expected_ = 0;
  std::unique_ptr<allocator> small_;
  std::unique_ptr<allocator> large_;
};

} // namespace terrace
