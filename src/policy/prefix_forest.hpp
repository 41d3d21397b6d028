// The residents of one tier, and which of them are leaves.
#pragma once

#include "policy/entry_table.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// Only a leaf, a resident without resident descendants in its tier, may be chosen as a victim. An entry may
/// become resident after its children and leave before them, so an entry is *alive* in a tier while it is
/// resident or has children that are alive: the ancestors of a resident stay inner nodes across a gap that
/// was once filled. One word per entry.
///
/// At most 262,142 children are counted: an entry with more stays an inner node until it is erased.
class prefix_forest {
 public:
  bool resident(entry_index at) const { return word(at) & resident_bit; }
  bool alive(entry_index at) const { return word(at) & (resident_bit | children_mask); }
  bool has_children(entry_index at) const { return word(at) & children_mask; }
  bool pinned(entry_index at) const { return word(at) & pinned_bit; }
  bool proposed(entry_index at) const { return word(at) & proposed_bit; }
  /// A resident without children, pinned or not.
  bool leaf(entry_index at) const { return (word(at) & (resident_bit | children_mask)) == resident_bit; }
  /// A leaf that is not pinned.
  bool may_leave(entry_index at) const {
    return (word(at) & (resident_bit | pinned_bit | children_mask)) == resident_bit;
  }
  uint64_t bytes_of(entry_index at) const { return sizes_[word(at) >> size_shift & size_mask]; }
  /// Loads what the calls above read into the cache.
  void fetch(entry_index at) const {
    if (at < reached_)
      __builtin_prefetch(&words_[at]);
  }

  void enter(entry_index at, uint64_t bytes);
  void leave(entry_index at);
  void set_pinned(entry_index at, bool pinned);
  /// The entry was chosen as a victim, and its eviction is not decided yet.
  void set_proposed(entry_index at, bool proposed);

  void add_child(entry_index at);
  void drop_child(entry_index at);

  /// A mark for policies: the entry has a slot among the candidates. It outlives the entry, as the slot does.
  bool listed(entry_index at) const { return word(at) & listed_bit; }
  void set_listed(entry_index at, bool listed);

  size_t residents() const { return residents_; }
  size_t bytes() const { return words_.bytes() + sizes_.capacity() * sizeof(uint64_t); }

 private:
  static constexpr uint32_t resident_bit = 1, pinned_bit = 2, proposed_bit = 4, listed_bit = 8;
  static constexpr int size_shift = 4;
  static constexpr uint32_t size_mask = 0x3ff; ///< an index into `sizes_`
  static constexpr int child_shift = 14;
  static constexpr uint32_t child = 1U << child_shift, children_mask = ~(child - 1);

  uint32_t word(entry_index at) const { return at < reached_ ? words_[at] : 0; }
  uint32_t& reach(entry_index at);
  void set(entry_index at, uint32_t bit, bool on);
  uint32_t size_class(uint64_t bytes);

  paged_column<uint32_t> words_;
  size_t reached_ = 0;
  std::vector<uint64_t> sizes_; ///< the chunks of a tier have few distinct sizes
  size_t residents_ = 0;
};

} // namespace terrace
