// The tiers below a tier that get its objects, and what is on its way to them. Part of the tier's actor.
#pragma once

#include "actors/interfaces.hpp"
#include "tier/demotion.hpp"
#include "tier/demotion_mode.hpp"
#include "tier/tier_index.hpp"

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
  std::shared_ptr<const tier_index> index; ///< what it has
  bool by_chain = false;                   ///< it may refuse objects by their value
};

struct tiers_below {
  std::vector<tier_below> all;

  struct descent {
    demotion progress;
    std::function<void(const demotion&)> over;
  };
  std::map<uint64_t, descent> descents; ///< in progress, by number
  uint64_t next = 0;

  std::vector<tier_below> with(demotion_mode mode) const {
    std::vector<tier_below> some;
    for (const tier_below& each : all)
      if (each.mode == mode)
        some.push_back(each);
    return some;
  }
};

} // namespace terrace::actors
