// Address-ordered first fit: objects of any size, neighbours stay neighbours.
#pragma once

#include "memory/arena_allocator.hpp"

namespace terrace {

/// A batch is tried as one run that is cut into consecutive parts (a chunk's objects then lie side by side: one I/O),
/// then as several runs, each size placed first fit in the batch's order, then once more with the largest sizes first.
/// With equal sizes a batch fails only if the arena cannot hold it; with mixed sizes packing is not searched further.
/// Parts are freed singly or together; a batch that is freed is joined first and touches the free runs once for each
/// joined run. A free run ends at a boundary, also when the bytes behind it are free: `largest_free_run` is what one
/// request can have. Costs: see `free_runs`.
class free_list_allocator : public arena_allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "free_list"; }
  void free(std::span<const extent> extents) override;

 private:
  explicit free_list_allocator(const allocator_options& options) : arena_allocator(options) {}

  bool place(std::span<const uint64_t> sizes, uint64_t total, std::vector<extent>& taken) override;
  bool take_one_run(std::span<const uint64_t> sizes, uint64_t total, std::vector<extent>& taken);
  std::optional<extent> take_one(uint64_t requested, bool first_fit) override;
};

} // namespace terrace
