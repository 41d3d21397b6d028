// Address-ordered first fit for objects of any size; objects of a batch stay adjacent.
#pragma once

#include "memory/arena_allocator.hpp"

namespace terrace {

/// A batch is first tried as one run cut into consecutive parts (the objects of a chunk are then adjacent:
/// one I/O), then as several runs with each size placed first fit in batch order, then again largest first.
/// With equal sizes a batch fails only if the arena cannot hold it; with mixed sizes no further packing is
/// searched. Parts are freed singly or together; a freed batch is merged first, so that the free runs are
/// updated once per merged run. A free run ends at a boundary even if the bytes after it are free:
/// `largest_free_run` is the largest possible request. Costs: see `free_runs`.
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
