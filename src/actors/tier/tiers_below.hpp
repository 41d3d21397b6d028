// The tiers below a tier that get its objects, and the objects in transit to them. Part of the tier's actor.
#pragma once

#include "actors/interfaces.hpp"
#include "tier/objects/demotion.hpp"
#include "tier/objects/demotion_mode.hpp"
#include "tier/objects/tier_index.hpp"
#include "tier/tier_availability.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace terrace::actors {

struct tier_below {
  demotion_mode mode = demotion_mode::off;
  write_through_actor to;
  std::shared_ptr<const tier_index> index; ///< index of the tier
  bool by_chain = false;                   ///< the tier may refuse objects by their value
  /// The tier is not the next one: it gets nothing from here, and its objects need not be written to the next
  /// one.
  bool further = false;
  uint64_t batch_bytes = UINT64_MAX;                  ///< most bytes of its space that are written together
  std::shared_ptr<const tier_availability> service{}; ///< null: always in service
};

struct tiers_below {
  std::vector<tier_below> all;

  struct descent {
    demotion progress;
    std::function<void(const demotion&)> over;
  };
  std::map<uint64_t, descent> descents; ///< descents in progress, by number
  uint64_t next = 0;

  std::vector<tier_below> with(demotion_mode mode) const {
    std::vector<tier_below> some;
    for (const tier_below& each : all)
      if (each.mode == mode && !each.further)
        some.push_back(each);
    return some;
  }
  /// Whether a tier below gets evicted objects, all or some of them.
  bool get_what_leaves() const {
    return std::any_of(all.begin(), all.end(),
                       [](const tier_below& each) { return needs_origins(each.mode) && !each.further; });
  }
};

} // namespace terrace::actors
