// SHADOW: computes the hits that other policies and capacities would have had on a trust group's requests. It
// runs on its own thread, so that it slows down no worker.
#pragma once

#include "actors/interfaces.hpp"
#include "base/credit_gate.hpp"
#include "metrics/tier_probe.hpp"
#include "tier/policy/shadow_policies.hpp"

#include <caf/fwd.hpp>

#include <memory>
#include <vector>

namespace terrace::actors {

struct shadow_arguments {
  std::vector<shadow_plan> plans;
  std::shared_ptr<credit_gate> shadow_gate;
  std::shared_ptr<metrics::shadow_probe> probe; ///< has a line per plan, in order; may be null
  clock_source clock = clock_source::steady;    ///< clock of the real policies
  bool detached = true;                         ///< false in tests that run everything on one thread
};

shadow_actor spawn_shadow(caf::actor_system& system, shadow_arguments arguments);

} // namespace terrace::actors
