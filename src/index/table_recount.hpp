// Counts the objects of a resident_table again, slot by slot, while the table changes.
#pragma once

#include "index/resident_table.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

/// Compares the two totals and returns a sentence for each difference.
std::vector<std::string> differences_of(const table_totals& counted, const table_totals& kept);

/// A walk over all slots in parts. The table reports each change of a slot, and a slot that was counted already is
/// counted anew, so after the last slot the totals are those of that moment. Belongs to the table's owner, and ends before the table. A table
/// has one recount at a time.
class table_recount {
 public:
  /// Called for each object that is counted (true) or no longer counts (false).
  using observer = std::function<void(uint32_t slot, const resident& object, bool counts)>;

  /// `also` may be null.
  explicit table_recount(resident_table& table, observer also = nullptr)
      : table_(table), also_(std::move(also)), touched_(table.slots(), false) {
    table_.watched_by(this);
  }
  table_recount(const table_recount&) = delete;
  table_recount& operator=(const table_recount&) = delete;
  ~table_recount() { table_.watched_by(nullptr); }

  /// All slots below this one are counted.
  uint32_t next() const { return next_; }
  /// Counts at most `slots_max` more slots. Returns false when all are counted.
  bool step(uint32_t slots_max);

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

  resident_table& table_;
  observer also_;
  uint32_t next_ = 0;
  table_totals totals_;
  std::vector<bool> touched_; ///< slots that were added since count as touched
};

} // namespace terrace
