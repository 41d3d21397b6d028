// The free runs of an arena, in the order of their addresses.
#pragma once

#include "memory/allocator.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace terrace {

/// A set of disjoint runs. A treap ordered by offset in which every node knows the largest run of its subtree, so that
/// "the first run of at least n bytes" takes O(log n) steps, where a list would be walked past all its small holes.
/// Source: Seidel and Aragon, "Randomized search trees" (1996); priorities are a hash of the offset, so the same calls
/// build the same tree.
class free_runs {
 public:
  /// Adds a run that touches none of the others' bytes. It is not joined with its neighbours.
  void insert(extent run);

  /// Removes the run that begins at `offset`; there must be one.
  extent remove(uint64_t offset);

  /// The run with the lowest offset that has at least `bytes`.
  std::optional<extent> first_fit(uint64_t bytes) const;

  /// The run that ends exactly at `offset`, and the one that begins there.
  std::optional<extent> ending_at(uint64_t offset) const;
  std::optional<extent> beginning_at(uint64_t offset) const;

  /// Size of the largest run, 0 when there is none. O(1).
  uint64_t largest() const { return root_ == none ? 0 : nodes_[root_].largest; }

  size_t count() const { return count_; }

 private:
  using index = uint32_t;
  static constexpr index none = ~index{0};

  struct node {
    extent run;
    uint64_t largest = 0; ///< of the subtree
    uint64_t priority = 0;
    index left = none;
    index right = none;
  };

  index make_node(extent run);
  void update(index at);
  /// Runs before `offset` go to `left`, the others to `right`.
  void split(index at, uint64_t offset, index& left, index& right);
  index merge(index left, index right);

  std::vector<node> nodes_;
  std::vector<index> spare_;
  index root_ = none;
  size_t count_ = 0;
};

} // namespace terrace
