// SHADOW: what other policies and capacities would have hit on a trust group's requests. On its own thread,
// so that it slows down no worker.
#pragma once

#include "actors/interfaces.hpp"
#include "metrics/shadow_probe.hpp"
#include "tier/policy_clock.hpp"
#include "tier/shadow_feed.hpp"

#include <caf/fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

struct shadow_plan {
  std::string policy; ///< one of `eviction_policy_names` (asserted: settings were validated)
  uint64_t capacity_bytes = 0;
};

struct shadow_arguments {
  std::vector<shadow_plan> plans;
  std::shared_ptr<shadow_feed> feed;
  std::shared_ptr<metrics::shadow_probe> probe; ///< with a line per plan, in order; or null
  clock_source clock = clock_source::steady;    ///< that of the real policies
  bool detached = true;                         ///< false in tests that run everything on one thread
};

shadow_actor spawn_shadow(caf::actor_system& system, shadow_arguments arguments);

/// The objects of an access as counted by the shadows, root first. States of trailing pools are omitted,
/// because it is unknown which of them a client would have stored. Their keys are the shadows' own and
/// contain the space.
std::vector<entry_info> entries_of(const shadow_use& use);
bool is_of(space_id space, entry_key key);

} // namespace terrace::actors
