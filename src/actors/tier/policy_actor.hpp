// POLICY: the eviction order of every tier of a trust group.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/tier/policy_clock.hpp"

#include <caf/fwd.hpp>

#include <string>
#include <vector>

namespace terrace::actors {

struct policy_arguments {
  struct order {
    tier_kind tier;
    std::string policy; ///< a name of `eviction_policy_names` (asserted: settings checked it)
  };
  std::vector<order> orders;
  clock_source clock = clock_source::steady;
  bool remember =
      false; ///< what left all tiers too, for rules of admission that ask how often a chunk was used
};

/// Of the lots that policies draw. Fixed, so that the same events have the same victims; it is the simulator's first.
constexpr uint64_t policy_seed = 1;

policy_actor spawn_policy(caf::actor_system& system, policy_arguments arguments);

} // namespace terrace::actors
