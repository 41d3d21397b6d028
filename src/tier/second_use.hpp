// Which uses of an object are its second one (the first is that it was stored): then it is written to the tiers below.
//
// Pure; used by one thread at a time.
#pragma once

#include "index/resident_table.hpp"
#include "index/segmented_array.hpp"

#include <vector>

namespace terrace {

/// Belongs to one tier: 4 bytes per object.
class second_use {
 public:
  /// Those of the used objects that were not used since they became resident, once each, in the order of their chains
  /// (uses are noted from the end of a chain).
  std::vector<object_id> take(const std::vector<object_id>& used) {
    std::vector<object_id> second;
    for (auto id = used.rbegin(); id != used.rend(); ++id)
      if (mark(*id))
        second.push_back(*id);
    return second;
  }

  /// They were not written after all: their next use counts as the second one again.
  void forget(const std::vector<object_id>& ids) {
    for (object_id id : ids)
      if (uint32_t slot = resident_table::slot_of(id); slot < seen_.size() && seen_[slot] == stay_of(id))
        seen_[slot] = 0;
  }

 private:
  /// An object's stay in its slot; never 0, because generations begin at 1.
  static uint32_t stay_of(object_id id) { return static_cast<uint32_t>(static_cast<uint64_t>(id) >> 32); }
  bool mark(object_id id) {
    uint32_t slot = resident_table::slot_of(id);
    while (seen_.size() <= slot)
      seen_.push_back(0);
    if (seen_[slot] == stay_of(id))
      return false;
    seen_[slot] = stay_of(id);
    return true;
  }

  segmented_array<uint32_t> seen_; ///< by slot: the last stay of which a use was seen
};

} // namespace terrace
