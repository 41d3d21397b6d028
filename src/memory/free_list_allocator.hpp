// Address-ordered first fit: objects of any size, little fragmentation, neighbours stay neighbours.
#pragma once

#include "memory/allocator.hpp"
#include "memory/free_runs.hpp"

#include <unordered_map>

namespace terrace {

/// A batch is tried as one run that is cut into consecutive parts (a chunk's objects then lie side by side: one I/O),
/// then as several runs, each size placed first fit in the batch's order, then once more with the largest sizes first.
/// With equal sizes a batch fails only if the arena cannot hold it; with mixed sizes packing is not searched further.
/// Parts are freed singly or together; a batch that is freed is joined first and touches the free runs once for each
/// joined run. A free run ends at a boundary, also when the bytes behind it are free: `largest_free_run` is what one
/// request can have. All operations are O(log free runs) for each extent.
class free_list_allocator : public allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "free_list"; }
  result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) override;
  void free(std::span<const extent> extents) override;
  uint64_t physical_size(uint64_t bytes) const override;
  uint64_t largest_possible() const override;
  allocator_usage usage() const override;

 private:
  struct allocation {
    uint64_t physical = 0;
    uint64_t requested = 0;
  };

  explicit free_list_allocator(const allocator_options& options);

  bool take_one_run(std::span<const uint64_t> sizes, std::vector<extent>& taken);
  bool take_each(std::span<const uint64_t> sizes, std::span<const size_t> order, std::vector<extent>& taken);
  extent take(extent run, uint64_t bytes);
  void give_back(extent run);
  void give_back_within_boundary(extent run);

  allocator_options options_;
  free_runs runs_;
  std::unordered_map<uint64_t, allocation> live_; ///< by offset
  uint64_t used_bytes_ = 0;
  uint64_t requested_bytes_ = 0;
};

} // namespace terrace
