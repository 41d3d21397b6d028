// Objects found in one tier, held there.
#pragma once

#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "tier/objects/object_hold.hpp"

#include <algorithm>
#include <vector>

namespace terrace {

/// The objects of a chain that the tier has. Its places are parallel to the chain's objects.
struct tier_hold {
  tier_kind tier = nowhere;
  hold_ptr held; ///< never null
};

/// One for each tier that has any of the objects, fastest first.
using tier_holds = std::vector<tier_hold>;

/// Returns null if nothing is held in that tier.
inline hold_ptr held_in(const tier_holds& all, tier_kind tier) {
  auto entry = std::find_if(all.begin(), all.end(), [&](const tier_hold& one) { return one.tier == tier; });
  return entry == all.end() ? nullptr : entry->held;
}

} // namespace terrace
