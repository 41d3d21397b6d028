// What was found in one tier, kept there.
#pragma once

#include "base/ids.hpp"
#include "tier/object_hold.hpp"

#include <algorithm>
#include <vector>

namespace terrace {

/// Of the objects of a chain: those that the tier has. Its places are parallel to the objects.
struct tier_hold {
  tier_kind tier = tier_kind::none;
  hold_ptr held; ///< never null
};

/// One for each tier that has any of them, fastest first.
using tier_holds = std::vector<tier_hold>;

/// Null when nothing is held in that tier.
inline hold_ptr held_in(const tier_holds& all, tier_kind tier) {
  auto entry = std::find_if(all.begin(), all.end(), [&](const tier_hold& one) { return one.tier == tier; });
  return entry == all.end() ? nullptr : entry->held;
}

} // namespace terrace
