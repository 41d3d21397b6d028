// The live extents of an arena, by offset.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

/// A hash table with open addressing and linear probing (Knuth, volume 3, algorithms 6.4 L and R: removal
/// moves entries back and leaves no tombstones). A live extent costs 48 to 96 bytes and no separate
/// allocation. Not thread-safe.
class live_extents {
 public:
  struct entry {
    uint64_t offset = empty;
    uint64_t requested = 0; ///< determines the physical size
    uint32_t tag = 0;       ///< for the allocator's own use
  };

  /// The offset must not be in the table.
  void insert(const entry& added) {
    if ((count_ + 1) * 2 > entries_.size())
      grow();
    place(added);
    ++count_;
  }

  /// nullptr if there is none. Valid until the next insert or remove.
  const entry* find(uint64_t offset) const {
    if (entries_.empty())
      return nullptr;
    for (size_t at = home(offset); entries_[at].offset != empty; at = (at + 1) & mask())
      if (entries_[at].offset == offset)
        return &entries_[at];
    return nullptr;
  }
  entry* find(uint64_t offset) { return const_cast<entry*>(std::as_const(*this).find(offset)); }

  /// Removes an entry returned by `find`.
  entry remove(entry* found) {
    entry removed = *found;
    size_t hole = static_cast<size_t>(found - entries_.data());
    for (size_t at = (hole + 1) & mask(); entries_[at].offset != empty; at = (at + 1) & mask()) {
      size_t from_home = (at - home(entries_[at].offset)) & mask();
      if (from_home >= ((at - hole) & mask())) {
        entries_[hole] = entries_[at];
        hole = at;
      }
    }
    entries_[hole].offset = empty;
    --count_;
    return removed;
  }

  /// Starts to load the slot of `offset` into the cache, for a caller with other work to do first.
  void prefetch(uint64_t offset) const {
    if (!entries_.empty())
      __builtin_prefetch(&entries_[home(offset)], 1);
  }

  size_t size() const { return count_; }

 private:
  static constexpr uint64_t empty = ~uint64_t{0};
  static constexpr uint64_t golden = 0x9e3779b97f4a7c15ULL;

  size_t mask() const { return entries_.size() - 1; }
  /// Multiplicative hashing (Knuth, 6.4).
  size_t home(uint64_t offset) const { return offset * golden >> shift_; }
  void place(const entry& added) {
    size_t at = home(added.offset);
    while (entries_[at].offset != empty) {
      assert(entries_[at].offset != added.offset && "live already");
      at = (at + 1) & mask();
    }
    entries_[at] = added;
  }
  void grow() {
    std::vector<entry> before(entries_.empty() ? 64 : entries_.size() * 2);
    before.swap(entries_);
    shift_ = 64 - std::countr_zero(entries_.size());
    for (const entry& e : before)
      if (e.offset != empty)
        place(e);
  }

  std::vector<entry> entries_; ///< size is a power of two, at most half in use
  size_t count_ = 0;
  int shift_ = 0;
};

} // namespace terrace
