// Tells which objects are used for the second time (the first use is the store): they are then written to the
// tiers below. It also remembers them: they are written again before they leave, if the tiers below have lost
// them since (decision 045).
//
// Pure; used by one thread at a time.
#pragma once

#include "index/resident_table.hpp"
#include "index/segmented_array.hpp"

#include <vector>

namespace terrace {

/// Belongs to one tier and takes 4 bytes per object.
class second_use {
 public:
  /// Returns those used objects that were not used before since they became resident, once each, in the order
  /// of their chains (uses are noted from the end of a chain).
  std::vector<object_id> take(const std::vector<object_id>& used) {
    std::vector<object_id> second;
    for (auto id = used.rbegin(); id != used.rend(); ++id)
      if (mark(*id))
        second.push_back(*id);
    return second;
  }

  /// These objects were not written after all: their next use counts as the second one again.
  void forget(const std::vector<object_id>& ids) {
    for (object_id id : ids)
      if (uint32_t slot = resident_table::slot_of(id); slot < seen_.size() && seen_[slot] == told(id))
        seen_[slot] = again(id);
  }

  /// True if a second use was seen.
  bool was_used(object_id id) const {
    uint32_t slot = resident_table::slot_of(id);
    return id != object_id{} && slot < seen_.size() && (seen_[slot] == told(id) || seen_[slot] == again(id));
  }

 private:
  /// An object's stay in its slot, without its highest bit (a slot would have to be used 2^31 times in between); never 0 in
  /// practice, because generations begin at 1.
  static uint32_t told(object_id id) { return static_cast<uint32_t>(static_cast<uint64_t>(id) >> 31) & ~1U; }
  static uint32_t again(object_id id) { return told(id) | 1; } ///< the next use counts again
  bool mark(object_id id) {
    uint32_t slot = resident_table::slot_of(id);
    while (seen_.size() <= slot)
      seen_.push_back(0);
    if (seen_[slot] == told(id))
      return false;
    seen_[slot] = told(id);
    return true;
  }

  /// By slot: the last stay for which a use was seen, and 1 if its next use counts again.
  segmented_array<uint32_t> seen_;
};

} // namespace terrace
