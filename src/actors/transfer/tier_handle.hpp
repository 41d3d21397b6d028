// A tier of a trust group, for everybody who uses it.
#pragma once

#include "actors/gpu/daemon/gpu_tier.hpp"
#include "actors/interfaces.hpp"
#include "metrics/tier_probe.hpp"
#include "storage/disk/direct_source.hpp"
#include "tier/objects/tier_index.hpp"
#include "tier/quota/tenant_states.hpp"
#include "tier/search/read_meter.hpp"
#include "tier/tier_config.hpp"
#include "transfer/write_admission.hpp"

#include <memory>
#include <string>

namespace terrace::actors {

/// Other actors use a tier through its handle, which has its configuration, too. Immutable once it has joined its
/// group, except for the referenced objects; safe on any thread.
struct tier_handle : tier_config { // `bytes`: the capacity that it has
  tier_actor tier;
  mover_actor mover; ///< between host memory and this tier; none for host memory itself
  remote_store_actor
      store; ///< of a tier that other machines write to: its index is a belief. None for others
  std::shared_ptr<const tier_index> index; ///< the tier's
  std::shared_ptr<metrics::tier_probe> probe = std::make_shared<metrics::tier_probe>();
  std::shared_ptr<const tier_availability> service; ///< null: always in service
  std::shared_ptr<tenant_states> tenants;           ///< for metrics; may be null

  // Only for tiers below the first:
  write_through_actor write_through; ///< writes objects stored above to this tier; may be null
  write_through_actor
      returns; ///< of a tier faster than host memory: writes what it gives up there; may be null
  std::shared_ptr<const read_meter>
      meter; ///< how fast it is read; null: nobody measures it, and it is always read
  std::shared_ptr<const device_tier>
      device; ///< of a GPU tier: it also copies to regions of its device, and what it had is lost while it does not read
  std::shared_ptr<direct_source> direct; ///< of a disk tier that devices may read themselves; null: none may
  /// Whether objects served by the first tier are offered to this one again, because it may lack them. Null:
  /// never.
  std::shared_ptr<terrace::offers_again> offers_again;

  bool faster_than(const tier_handle& other) const { return kind < other.kind; }
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
