// A plain heap with a cap: for small values of many sizes.
#pragma once

#include "memory/space_allocator.hpp"

#include <set>
#include <utility>

namespace terrace {

/// Best fit: a value goes into the smallest free run that holds it, of several the one with the lowest address (Knuth,
/// volume 1, section 2.5). Values of any size fill each other's holes and long runs stay whole; nothing keeps the values
/// of a request together. `capacity_bytes` is the cap. A call costs a search in a tree of the runs by size, beside those
/// of `free_runs`.
class buffer_allocator : public space_allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "buffer"; }
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) override;
  void free(std::span<const extent> extents) override;
  result<void> grow(uint64_t bytes) override;
  result<void> retire(extent range) override;

 private:
  explicit buffer_allocator(const allocator_options& options) : space_allocator(options) { index_runs(); }

  std::optional<extent> take_one(uint64_t requested, bool first_fit) override;
  void index_runs(); ///< anew

  std::set<std::pair<uint64_t, uint64_t>> by_size_; ///< size and offset of each free run
};

} // namespace terrace
