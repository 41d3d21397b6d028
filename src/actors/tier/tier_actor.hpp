// TIER: the residency index of one tier of a trust group, with its allocator and its connection to the
// group's policy.
#pragma once

#include "actors/interfaces.hpp"
#include "metrics/tier_probe.hpp"
#include "runtime/home.hpp"
#include "tier/objects/residency.hpp"
#include "tier/tier_config.hpp"

#include <caf/fwd.hpp>

#include <memory>

namespace terrace::actors {

/// A tier owns this from its start.
struct tier_start {
  std::unique_ptr<allocator> space;   ///< from here on owned by the tier's allocator actor
  std::unique_ptr<residency> objects; ///< the objects whose extents `space` contains; null: none
  index_keeper keeper;  ///< for a durable tier: receives all changes; null: it does not survive restarts
  runtime::home home{}; ///< home of its write-through; may be none
};

struct tier_arguments {
  tier_config config;
  tier_start start;
  policy_actor policy;
  ledger_ptr leases;                     ///< ledger of host memory; null: leases are not charged
  std::shared_ptr<tenant_quotas> quotas; ///< null: tenants have no quotas
  /// Ends holds of many objects away from the workers; null: the holder of the last reference does.
  teardown_ptr ends;
  std::shared_ptr<event_log> log; ///< log of the group's tiers; null: nobody subscribes
  std::shared_ptr<metrics::tier_probe> probe;
};

/// Spawns the tier and its allocator. Ends on an exit message; linked to its allocator.
tier_actor spawn_tier(caf::actor_system& system, tier_arguments arguments);

// ALLOCATOR: the free space of one arena, and the queue of requests waiting for it.

struct allocator_arguments {
  std::unique_ptr<allocator> space;
  tier_actor tier; ///< makes room when the allocator asks
  uint64_t free_ahead_bytes = 0;
  size_t waiting_max = 4096;
  std::shared_ptr<metrics::tier_probe> probe; ///< probe of its tier
};

allocator_actor spawn_allocator(caf::actor_system& system, allocator_arguments arguments);

} // namespace terrace::actors
