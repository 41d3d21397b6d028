// The tiers that a lookup searches, in the order of the group's list (tier_list.hpp).
#pragma once

#include "base/ids.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

/// Those that are empty or unreadable are not searched. `Tier`: an entry of a tier_list, with `kind`, `index`, `reads()`
/// and `degraded()`. Refers to the list, which outlives it. Used by one thread at a time.
template <class Tier>
class searched_tiers {
 public:
  /// `wanted`: bit n: tier_kind n may be searched; 0: all.
  searched_tiers(const std::vector<Tier>& all, uint32_t wanted) {
    for (const Tier& tier : all) {
      bool allowed = wanted == 0 || (wanted >> static_cast<unsigned>(tier.kind) & 1) != 0;
      if (allowed && tier.reads() && !tier.index->empty())
        searched_.push_back(&tier);
    }
  }

  size_t size() const { return searched_.size(); }
  const Tier& operator[](size_t i) const { return *searched_[i]; }

  std::vector<tier_kind> kinds() const {
    std::vector<tier_kind> kinds;
    for (const Tier* tier : searched_)
      kinds.push_back(tier->kind);
    return kinds;
  }

  /// False: a tier of `all` may have objects that the search could not find. `all`: those that are there now.
  bool everything(const std::vector<Tier>& all) const {
    return std::all_of(all.begin(), all.end(), [this](const Tier& tier) {
      bool was = std::any_of(searched_.begin(), searched_.end(),
                             [&tier](const Tier* one) { return one->kind == tier.kind; });
      return (was || tier.index->empty()) && tier.degraded().empty();
    });
  }

 private:
  std::vector<const Tier*> searched_;
};

} // namespace terrace
