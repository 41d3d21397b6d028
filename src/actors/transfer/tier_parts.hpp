// A tier of a trust group: everything its users need.
#pragma once

#include "actors/gpu/daemon/device_tier.hpp"
#include "actors/interfaces.hpp"
#include "metrics/tier_probe.hpp"
#include "storage/disk/direct_source.hpp"
#include "tier/objects/demotion_mode.hpp"
#include "tier/objects/tier_index.hpp"
#include "tier/search/read_meter.hpp"
#include "tier/tier_availability.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace terrace::actors {

/// A tier as an end of a passage (actors/transfer/bring.hpp).
struct passage_end {
  tier_kind kind = tier_kind::none;
  tier_actor tier;
  mover_actor mover; ///< between host memory and this tier; none for host memory itself
};

/// Immutable once it has joined its group, except for the referenced objects; safe on any thread.
struct tier_parts : passage_end {
  std::shared_ptr<const tier_index> index; ///< the tier's
  std::shared_ptr<metrics::tier_probe> probe;
  std::shared_ptr<const tier_availability> service; ///< null: always in service

  // Only for tiers below the first:
  uint64_t bytes = 0;                          ///< its capacity
  write_through_actor write_through;           ///< writes objects stored above to this tier; may be null
  demotion_mode demotion = demotion_mode::off; ///< when it gets what host memory has
  write_through_actor
      returns; ///< of a tier faster than host memory: writes what it gives up there; may be null
  demotion_mode returning = demotion_mode::off; ///< when that is
  std::shared_ptr<const read_meter>
      meter; ///< how fast it is read; null: nobody measures it, and it is always read
  std::shared_ptr<const device_tier>
      device; ///< of a GPU tier: it also copies to regions of its device, and what it had is lost while it does not read
  std::shared_ptr<direct_source> direct; ///< of a disk tier that devices may read themselves; null: none may
  /// Whether objects served by the first tier are offered to this one again, because it may lack them. Null:
  /// never.
  std::shared_ptr<const std::atomic<bool>> second_looks;

  bool reads() const { return !service || service->reads(); }
  /// True for a tier below the first whose objects can be read now.
  bool reads_below() const { return mover && reads(); }
  bool writes() const { return !service || service->writes(); }
  std::string degraded() const {
    return service ? service->reason() : std::string();
  } ///< the reason; empty if in service
  uint64_t read_bytes_per_s(read_meter::time_point now) const {
    return meter ? static_cast<uint64_t>(meter->state(now).bytes_per_s) : 0;
  } ///< 0: not known
  std::string notice() const { return service ? service->notice() : std::string(); }
};

} // namespace terrace::actors
