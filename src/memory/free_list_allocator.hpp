// Address-ordered first fit: objects of any size, neighbours stay neighbours.
#pragma once

#include "memory/extent_space.hpp"

namespace terrace {

/// A batch is tried as one run that is cut into consecutive parts (a chunk's objects then lie side by side: one I/O),
/// then as several runs, each size placed first fit in the batch's order, then once more with the largest sizes first.
/// With equal sizes a batch fails only if the arena cannot hold it; with mixed sizes packing is not searched further.
/// Parts are freed singly or together; a batch that is freed is joined first and touches the free runs once for each
/// joined run. A free run ends at a boundary, also when the bytes behind it are free: `largest_free_run` is what one
/// request can have. Costs: see `free_runs`.
class free_list_allocator : public allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "free_list"; }
  result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) override;
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) override;
  void free(std::span<const extent> extents) override;
  uint64_t physical_size(uint64_t bytes) const override { return space_.physical_size(bytes); }
  uint64_t largest_possible() const override { return space_.largest_possible(); }
  allocator_usage usage() const override { return space_.usage(); }
  result<void> grow(uint64_t bytes) override { return space_.grow(bytes); }
  result<void> retire(extent range) override { return space_.retire(range); }
  uint64_t used_in(extent range) const override { return space_.used_in(range); }
  std::vector<size_t> choose(std::span<const uint64_t> sizes, std::span<const extent> candidates) override {
    return space_.choose(sizes, candidates);
  }

 private:
  explicit free_list_allocator(const allocator_options& options) : space_(options) {}

  bool take_one_run(std::span<const uint64_t> sizes, uint64_t total, std::vector<extent>& taken);
  bool take_each(std::span<const uint64_t> sizes, std::span<const size_t> order, std::vector<extent>& taken);

  extent_space space_;
};

} // namespace terrace
