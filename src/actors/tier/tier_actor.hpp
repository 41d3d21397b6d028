// TIER: the residency index of one tier of a trust group, with its allocator and its place in the group's policy.
#pragma once

#include "actors/interfaces.hpp"
#include "memory/path_map.hpp"
#include "metrics/tier_probe.hpp"
#include "tier/residency.hpp"

#include <caf/fwd.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

struct tier_arguments {
  tier_kind kind = tier_kind::none;
  std::unique_ptr<allocator> space;                  ///< owned by the tier's allocator actor from here on
  std::unique_ptr<residency> objects;                ///< what `space` has extents of; null: nothing
  std::vector<caf::actor> journals;                  ///< of a durable tier, by path (journal_actor.hpp)
  path_map map{std::array<uint64_t, 1>{UINT64_MAX}}; ///< where in the arena its paths lie
  policy_actor policy;
  uint64_t free_ahead_bytes = 0; ///< evict in advance while less than this is free
  size_t waiting_max = 4096;     ///< allocation requests that may wait; further ones get `busy`
  std::shared_ptr<metrics::tier_probe> probe;
};

/// Spawns the tier and, with it, its allocator. Ends on an exit message; linked to its allocator.
tier_actor spawn_tier(caf::actor_system& system, tier_arguments arguments);

} // namespace terrace::actors
