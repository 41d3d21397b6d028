// Residents of a tier as a forest of chunks, with its leaves in the order in which a policy wants them to go.
#pragma once

#include "policy/eviction_policy.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace terrace {

/// Where an entry stands in its policy's order: lower goes first. Two numbers, for policies with ties to break.
struct eviction_rank {
  uint64_t first = 0;
  uint64_t second = 0;
  friend auto operator<=>(const eviction_rank&, const eviction_rank&) = default;
};

/// Only a leaf, an entry without a resident descendant, may be named a victim. An entry may become resident after its
/// children and leave before them: while it has children it is remembered as absent, with its link to its own parent,
/// so that the ancestors of a resident chunk stay inner entries across a gap that was once filled. An absent entry
/// is forgotten with its last child, so there are never more links than residents and their gaps.
///
/// Links come from clients, so they may form a circle, which would keep its members for ever: the link that would close
/// one is not made. The check walks up from the new parent, and only when an entry arrives after its children.
///
/// Cost: O(log leaves) for each event (that walk apart), `victims` O(log leaves) for each leaf it looks at, the best first.
class leaf_tree {
 public:
  using index = uint32_t;

  /// A new resident with its rank. False, and no change, when it is resident already.
  bool insert(const entry_info& entry, eviction_rank rank);

  /// False for entries that are not resident.
  bool contains(entry_key key) const { return find(key).has_value(); }
  bool set_rank(entry_key key, eviction_rank rank);
  std::optional<eviction_rank> rank_of(entry_key key) const;
  bool erase(entry_key key);

  /// Leaves by rising rank until they add up to `bytes`; each one named makes way for its parent. Changes nothing.
  std::vector<victim> victims(uint64_t bytes, const evictable_filter& may_leave) const;

  size_t size() const { return residents_; }

  /// Entries that are remembered only because a descendant is resident.
  size_t absent_size() const { return by_key_.size() - residents_; }

  /// Bookkeeping of one entry: its node, its share of the hash table, and its place among the leaves (three pointers and
  /// a colour), which inner entries do not have.
  static size_t bytes_per_entry();

 private:
  static constexpr index none = ~index{0};

  struct node {
    entry_key key;
    eviction_rank rank;
    uint64_t bytes = 0;
    index parent = none;
    uint32_t children = 0; ///< nodes, resident or absent, whose parent this is
    bool resident = false;
  };

  struct leaf {
    eviction_rank rank;
    index at = none;
    friend auto operator<=>(const leaf&, const leaf&) = default;
  };

  std::optional<index> find(entry_key key) const;
  index find_or_make(entry_key key);
  bool is_leaf(const node& n) const { return n.resident && n.children == 0; }
  void link(index child, entry_key parent);
  /// Drops absent nodes without children, from `at` upward, and makes a leaf of the first resident one without.
  void settle(index at);

  std::vector<node> nodes_;
  std::vector<index> spare_;
  std::unordered_map<entry_key, index> by_key_;
  std::set<leaf> leaves_;
  size_t residents_ = 0;
};

} // namespace terrace
