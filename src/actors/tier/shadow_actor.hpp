// SHADOW: what other policies and capacities would have hit of a trust group's traffic. A thread of its own, so that no
// worker is slower for it.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/tier/policy_clock.hpp"
#include "actors/tier/shadow_feed.hpp"
#include "metrics/shadow_probe.hpp"

#include <caf/fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

struct shadow_plan {
  std::string policy; ///< a name of `eviction_policy_names` (asserted: settings checked it)
  uint64_t capacity_bytes = 0;
};

struct shadow_arguments {
  std::vector<shadow_plan> plans;
  std::shared_ptr<shadow_feed> feed;
  std::shared_ptr<metrics::shadow_probe> probe; ///< with a line for each plan, in their order; or null
  clock_source clock = clock_source::steady;    ///< that of the real policies
  bool detached = true;                         ///< false in tests that run everything on one thread
};

shadow_actor spawn_shadow(caf::actor_system& system, shadow_arguments arguments);

/// The objects that a use is about, root first, as the shadows hear of them. States of trailing pools are left out: which
/// of them a client would have stored nobody knows. Their keys are the shadows' own: each tells the space that it is of.
std::vector<entry_info> entries_of(const shadow_use& use);
bool is_of(space_id space, entry_key key);

} // namespace terrace::actors
