// Counts how often each object occurs.
#pragma once

#include "index/resident.hpp"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// A hash table with linear probing, without an allocation per object, because a lease counts and uncounts
/// each of its objects. It takes 16 bytes per cell and two to eight cells per object, and gives memory back.
/// Used by one thread at a time.
class object_count_table {
 public:
  bool contains(object_id id) const { return !cells_.empty() && cells_[place_of(id)].count != 0; }
  size_t size() const { return used_; }
  size_t cells() const { return cells_.size(); }

  /// Returns how often the object is counted now. `id` is not 0.
  uint32_t add(object_id id) {
    if (2 * (used_ + 1) > cells_.size())
      resize(cells_.empty() ? cells_min : 2 * cells_.size());
    cell& at = cells_[place_of(id)];
    if (at.count == 0) {
      at.id = id;
      ++used_;
    }
    return ++at.count;
  }

  /// Returns how often the object is still counted; it must be counted. `shrinks`: gives memory back.
  uint32_t remove(object_id id, bool shrinks = true) {
    size_t at = place_of(id);
    assert(cells_[at].count != 0);
    if (uint32_t left = --cells_[at].count; left != 0)
      return left;
    --used_;
    close_gap(at);
    if (shrinks && cells_.size() > cells_min && 8 * used_ < cells_.size())
      resize(cells_.size() / 2);
    return 0;
  }

 private:
  struct cell {
    object_id id{};
    uint32_t count = 0; ///< 0: free
  };
  static constexpr size_t cells_min = 64; // a power of two, like all sizes

  size_t home_of(object_id id) const {
    uint64_t mixed = static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15; // Fibonacci hashing
    return static_cast<size_t>(mixed >> 32) & (cells_.size() - 1);
  }
  /// Returns the object's cell, or the free cell in which it would be.
  size_t place_of(object_id id) const {
    size_t at = home_of(id);
    while (cells_[at].count != 0 && cells_[at].id != id)
      at = (at + 1) & (cells_.size() - 1);
    return at;
  }
  /// Moves back the entries that the removed one had displaced.
  void close_gap(size_t gap) {
    size_t mask = cells_.size() - 1;
    for (size_t at = (gap + 1) & mask; cells_[at].count != 0; at = (at + 1) & mask)
      if (((at - home_of(cells_[at].id)) & mask) >= ((at - gap) & mask)) {
        cells_[gap] = cells_[at];
        cells_[at].count = 0;
        gap = at;
      }
  }
  void resize(size_t cells) {
    std::vector<cell> former(cells);
    former.swap(cells_);
    for (const cell& each : former)
      if (each.count != 0)
        cells_[place_of(each.id)] = each;
  }

  std::vector<cell> cells_;
  size_t used_ = 0;
};

/// Many such tables, each for some runs of a thousand objects, so that growing one of them does not take
/// long. They do not all grow at the same time, because objects stored together are neighbors. The last few
/// of them keep their size, and one small table is kept when it is empty, so that a single lease that comes
/// and goes does not make them grow and shrink each time.
class object_counts {
 public:
  bool contains(object_id id) const {
    const auto& table = tables_[place_of(id)];
    return table && table->contains(id);
  }
  size_t size() const { return used_; }

  /// Returns how often the object is counted now. `id` is not 0.
  uint32_t add(object_id id) {
    auto& table = tables_[place_of(id)];
    if (!table) {
      table = spare_ ? std::move(spare_) : std::make_unique<object_count_table>();
      ++in_use_;
    }
    uint32_t count = table->add(id);
    used_ += count == 1 ? 1 : 0;
    return count;
  }

  /// Returns how often the object is still counted; it must be counted.
  uint32_t remove(object_id id) {
    auto& table = tables_[place_of(id)];
    uint32_t count = table->remove(id, in_use_ > few_tables);
    used_ -= count == 0 ? 1 : 0;
    if (table->size() == 0) {
      --in_use_;
      if (table->cells() <= spare_cells_max)
        spare_ = std::move(table);
      table.reset();
    }
    return count;
  }

 private:
  static constexpr size_t run_objects = 1'024;
  static constexpr size_t tables_max = 256;
  static constexpr size_t few_tables = 4;
  static constexpr size_t spare_cells_max = 256; ///< enough for 128 objects: 4 KiB
  static size_t place_of(object_id id) { return static_cast<uint64_t>(id) / run_objects % tables_max; }

  std::array<std::unique_ptr<object_count_table>, tables_max> tables_;
  std::unique_ptr<object_count_table> spare_; ///< an empty table that is kept; null: none
  size_t in_use_ = 0;                         ///< number of tables
  size_t used_ = 0;
};

} // namespace terrace
