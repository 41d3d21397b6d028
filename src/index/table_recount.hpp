// Counts the objects of a resident_table again, slot by slot, while the table changes.
#pragma once

#include "index/resident.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

/// The numbers that a table keeps about its objects. Bytes are physical.
struct table_totals {
  struct sum {
    uint64_t objects = 0;
    uint64_t bytes = 0;
    friend bool operator==(const sum&, const sum&) = default;
  };
  sum all; ///< objects in any state but free
  uint64_t readable = 0;
  sum held;
  uint64_t reserved_bytes = 0;
  std::unordered_map<uint32_t, sum> by_space; ///< the spaces that have objects
};

/// Compares the two totals and returns a sentence for each difference.
std::vector<std::string> differences_of(const table_totals& counted, const table_totals& kept);

/// A walk over all slots in parts. The table reports each change of a slot, and a slot that was counted already is
/// counted anew, so after the last slot the totals are those of that moment. Belongs to the table's owner.
class table_recount {
 public:
  /// Called for each object that is counted (true) or no longer counts (false).
  using observer = std::function<void(uint32_t slot, const resident& object, bool counts)>;

  /// `slots` is the number of slots of the table now. `also` may be null.
  explicit table_recount(uint32_t slots, observer also = nullptr)
      : also_(std::move(also)), touched_(slots, false) {}

  /// All slots below this one are counted.
  uint32_t next() const { return next_; }
  /// Counts the next slot, which has this object or is free.
  void count(const resident& object) {
    add(next_, object);
    ++next_;
  }

  /// The table calls it before and after each change of the object in the slot, its holds included.
  void changing(uint32_t slot, const resident& object) {
    if (slot < touched_.size())
      touched_[slot] = true;
    if (slot < next_)
      subtract(slot, object);
  }
  void changed(uint32_t slot, const resident& object) {
    if (slot < next_)
      add(slot, object);
  }

  /// True if the slot has changed since the walk began.
  bool touched(uint32_t slot) const { return slot >= touched_.size() || touched_[slot]; }

  const table_totals& totals() const { return totals_; }

 private:
  void add(uint32_t slot, const resident& object);
  void subtract(uint32_t slot, const resident& object);

  observer also_;
  uint32_t next_ = 0;
  table_totals totals_;
  std::vector<bool> touched_; ///< slots that were added since count as touched
};

} // namespace terrace
