// Guarantees for several groups that share a number of slots, such as connections.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace terrace {

/// Half of the slots are guaranteed, to each group equally; the others are for whoever comes first. So a group
/// alone can take nearly all slots, and no group can keep another from its guarantee. Pure.
class slot_shares {
 public:
  /// `groups`: how many may take slots, at least 1.
  slot_shares(uint64_t slots, uint64_t groups)
      : guaranteed_(groups == 1 ? slots : std::max<uint64_t>(slots / (2 * groups), slots < groups ? 0 : 1)),
        common_(slots - std::min(slots, guaranteed_ * groups)) {}

  uint64_t guaranteed() const { return guaranteed_; }
  /// The most that one group can take.
  uint64_t most() const { return guaranteed_ + common_; }

  /// Takes a slot for the group; false: it has its guarantee, and all common slots are taken.
  bool take(uint64_t group) {
    uint64_t& mine = taken_[group];
    if (mine >= guaranteed_) {
      if (common_taken_ == common_)
        return false;
      ++common_taken_;
    }
    ++mine;
    return true;
  }

  /// Once per successful `take`.
  void give_back(uint64_t group) {
    uint64_t& mine = taken_[group];
    if (mine > guaranteed_)
      --common_taken_;
    if (--mine == 0)
      taken_.erase(group);
  }

 private:
  uint64_t guaranteed_;
  uint64_t common_;
  uint64_t common_taken_ = 0;
  std::unordered_map<uint64_t, uint64_t> taken_;
};

} // namespace terrace
