// The tiers below a tier that get its objects, and the objects in transit to them. Part of the tier's actor.
#pragma once

#include "actors/transfer/tier_handle.hpp"
#include "tier/objects/demotion.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace terrace::actors {

struct tiers_below {
  std::vector<tier_joined_notice> all;

  struct descent {
    demotion progress;
    std::function<void(const demotion&)> over;
  };
  std::map<uint64_t, descent> demotions; ///< descents in progress, by number
  uint64_t next = 0;

  std::vector<tier_joined_notice> with(demotion_mode mode) const {
    std::vector<tier_joined_notice> some;
    for (const tier_joined_notice& each : all)
      if (each.mode == mode && each.by)
        some.push_back(each);
    return some;
  }
  /// Whether a tier below gets evicted objects, all or some of them.
  bool get_what_leaves() const {
    return std::any_of(all.begin(), all.end(),
                       [](const tier_joined_notice& each) { return needs_origins(each.mode) && each.by; });
  }
};

} // namespace terrace::actors
