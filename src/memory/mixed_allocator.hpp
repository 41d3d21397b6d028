// Two allocators in one arena: `buffer` for small objects, `size_class` for all others.
#pragma once

#include "memory/allocator.hpp"

namespace terrace {

/// The first `small_percent` of the arena are for objects of at most `small_max_bytes` (physical), so that
/// small objects are not placed between large ones. Small objects that do not fit there are placed in the
/// area of the large ones; large objects are never placed in the small area. The small objects of a batch are
/// kept together in one area if possible. The small area keeps its size when the arena grows.
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
  uint64_t live_size(uint64_t offset) const override {
    return offset < small_end_ ? small_->live_size(offset) : large_->live_size(offset);
  }
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates) override;

 private:
  mixed_allocator(const allocator_options& options, uint64_t small_end);

  bool in_small_area(const extent& e) const { return e.offset < small_end_; }
  bool is_small(uint64_t bytes) const { return physical_size(bytes) <= small_limit(); }
  uint64_t small_limit() const;

  /// Places the objects of `which` (indices of `sizes`) in `area`, all or none; stores their places in `taken`.
  bool place(allocator& area, std::span<const uint64_t> sizes, std::span<const size_t> which,
             std::vector<extent>& taken);
  void count_alike(); ///< call after every change: both areas count whole objects of the same size

  allocator_options options_;
  uint64_t small_end_;
  uint64_t expected_ = 0;
  std::unique_ptr<allocator> small_;
  std::unique_ptr<allocator> large_;
};

} // namespace terrace
