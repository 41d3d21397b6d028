// TIER: the residency index of one tier of a trust group, with its allocator and its connection to the
// group's policy.
#pragma once

#include "actors/interfaces.hpp"
#include "metrics/tier_probe.hpp"
#include "tier/objects/residency.hpp"

#include <caf/fwd.hpp>

#include <memory>
#include <string>

namespace terrace::actors {

struct tier_arguments {
  tier_kind kind = tier_kind::none;
  std::unique_ptr<allocator> space;   ///< owned by the tier's allocator actor from here on
  std::unique_ptr<residency> objects; ///< the objects whose extents `space` contains; null: none
  index_keeper keeper;                ///< of a durable tier: hears of all changes
  policy_actor policy;
  uint64_t free_ahead_bytes = 0;         ///< evict ahead while less than this is free
  ledger_ptr leases;                     ///< of host memory; null: leases are not charged
  std::shared_ptr<tenant_quotas> quotas; ///< null: tenants have none
  teardown_ptr ends; ///< ends holds of many objects, off the workers; null: whoever has the last reference
  std::shared_ptr<event_log> log; ///< of the group's tiers; null: nobody subscribes
  size_t waiting_max = 4096;      ///< allocation requests that may wait; further ones get `busy`
  std::shared_ptr<metrics::tier_probe> probe;
};

/// Spawns the tier and its allocator. Ends on an exit message; linked to its allocator.
tier_actor spawn_tier(caf::actor_system& system, tier_arguments arguments);

} // namespace terrace::actors
