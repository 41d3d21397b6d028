// The configuration of a tier.
#pragma once

#include "base/eviction_types.hpp"
#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "memory/allocator.hpp"
#include "tier/objects/demotion_mode.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace {

// Says whether a tier is available. The actor that moves its bytes sets it; any thread may read it.

class tier_availability {
 public:
  virtual ~tier_availability() = default;

  /// True if at least some objects can be read. Otherwise they count as misses; they may become readable again.
  virtual bool reads() const = 0;
  /// True if objects may be written: the tier is healthy, or it is time to retry.
  virtual bool writes() const = 0;
  /// Says why the tier is degraded; empty if it is not.
  virtual std::string reason() const = 0;
  /// Returns what an operator should know although the tier is in service; empty if nothing.
  virtual std::string notice() const { return {}; }
};

/// Which objects are written to a tier below.
struct disk_admission {
  admission_rule rule = admission_rule::always;
  uint64_t bytes_per_day = 0; ///< 0: no limit
};

struct tier_config {
  tier_kind kind = nowhere;
  uint64_t bytes = 0;
  std::string allocator = "size_class";
  uint64_t slot_bytes = 0;
  uint64_t small_max_bytes = 64 << 10;
  uint32_t small_percent = 5;
  std::string policy = "kmg";
  uint64_t free_ahead_bytes = 0; ///< evict ahead while less than this is free
  uint32_t waiting_max = 4096;   ///< allocation requests that may wait; further ones get `busy`
  bool staging_only = false;     ///< the tier keeps only objects that are held

  // Only for tiers that objects reach from host memory:
  disk_admission admission;
  demotion_mode demotion = demotion_mode::write_through; ///< when the tier gets objects of host memory
  /// For a tier faster than host memory: when host memory gets its objects.
  demotion_mode returning = demotion_mode::off;
  uint64_t write_bytes_in_progress =
      128 << 20; ///< bytes written to it at a time; a single larger notice is written alone
  uint64_t write_bytes_together = UINT64_MAX; ///< most bytes of another tier's victims in one batch
};

/// Makes the tier's allocator for an arena of this size; `boundary_bytes`: see `allocator_options`. Errors:
/// the allocator's.
result<std::unique_ptr<allocator>> make_space(const tier_config& config, uint64_t bytes,
                                              uint64_t boundary_bytes);

} // namespace terrace
