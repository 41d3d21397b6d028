// A best-fit heap with a capacity limit, for small values of many sizes.
#pragma once

#include "memory/arena_allocator.hpp"

#include <set>
#include <utility>

namespace terrace {

/// Best fit: a value is placed in the smallest free run that holds it, and among equally small runs in the
/// one with the lowest address (Knuth, volume 1, section 2.5). Values of any size fill each other's holes and
/// long runs stay whole; the values of one request are not kept together. `capacity_bytes` is the limit.
/// Besides the cost of `free_runs`, each call searches a tree of runs by size.
class buffer_allocator : public arena_allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "buffer"; }
  void free(std::span<const extent> extents) override;

 private:
  explicit buffer_allocator(const allocator_options& options) : arena_allocator(options) { runs_changed(); }

  std::optional<extent> take_one(uint64_t requested, bool first_fit) override;
  void runs_changed() override;

  std::set<std::pair<uint64_t, uint64_t>> by_size_; ///< size and offset of each free run
};

} // namespace terrace
