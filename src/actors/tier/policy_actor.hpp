// POLICY: the eviction policies of all tiers of a trust group.
#pragma once

#include "actors/interfaces.hpp"
#include "base/credit_gate.hpp"
#include "metrics/tier_probe.hpp"
#include "tier/objects/event_log.hpp"
#include "tier/policy/group_policies.hpp"
#include "tier/policy/shadow_policies.hpp"

#include <caf/fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

struct policy_arguments {
  struct order {
    tier_kind tier;
    std::string policy; ///< one of `eviction_policy_names` (asserted: settings were validated)
    std::shared_ptr<metrics::tier_probe> probe; ///< probe of the tier, for the ages of accesses; may be null
  };
  std::vector<order> orders;
  /// Credit of connections' notices about inferences.
  std::shared_ptr<credit_gate> uses = std::make_shared<credit_gate>();
  clock_source clock = clock_source::steady;
  /// Told of each tier's policy, for whoever asks which one has evicted an object; null: nobody asks.
  std::shared_ptr<event_log> log = nullptr;
  /// Also remember entries evicted from all tiers, for admission rules that count accesses.
  bool remember = false;
};

policy_actor spawn_policy(caf::actor_system& system, policy_arguments arguments);

// SHADOW: computes the hits that other policies and capacities would have had on a trust group's requests. It
// runs on its own thread, so that it slows down no worker.

struct shadow_arguments {
  std::vector<shadow_plan> plans;
  std::shared_ptr<credit_gate> shadow_gate;
  std::shared_ptr<metrics::shadow_probe> probe; ///< has a line per plan, in order; may be null
  clock_source clock = clock_source::steady;    ///< clock of the real policies
  bool detached = true;                         ///< false in tests that run everything on one thread
};

shadow_actor spawn_shadow(caf::actor_system& system, shadow_arguments arguments);

} // namespace terrace::actors
