// The configuration of a tier.
#pragma once

#include "base/eviction_types.hpp"
#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "index/object_header.hpp"
#include "memory/allocator.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace terrace {

// Says when objects of a tier are written to a tier below it.

enum class demotion_mode : uint8_t {
  write_through, ///< when they are stored
  write_back,    ///< when they are evicted, which waits until they are written
  selective,     ///< at their second use, and when they are evicted if they were used and are no longer below
  off,           ///< never
};

/// The names in the order of the enumeration; they are also the values of settings.
constexpr std::array<std::string_view, 4> demotion_modes{"write_through", "write_back", "selective", "off"};

constexpr std::string_view to_string(demotion_mode mode) { return demotion_modes[static_cast<size_t>(mode)]; }

/// True if objects are written long after they were stored: their tier then keeps their origins
/// (tier/policy/second_use.hpp).
constexpr bool needs_origins(demotion_mode mode) {
  return mode == demotion_mode::write_back || mode == demotion_mode::selective;
}

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
struct admission_rules {
  admission_rule rule = admission_rule::always;
  write_rates budget{};
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
  admission_rules admission;
  demotion_mode demotion = demotion_mode::write_through; ///< when the tier gets objects of host memory
  /// For a tier faster than host memory: when host memory gets its objects.
  demotion_mode returning = demotion_mode::off;
  uint64_t write_bytes_in_progress =
      128 << 20; ///< bytes written to it at a time; a single larger notice is written alone
  uint64_t write_bytes_together = UINT64_MAX; ///< most bytes of another tier's victims in one batch
};

/// Makes the tier's allocator for an arena of this size; `boundary_bytes`: see `allocator_options`. Errors:
/// the allocator's.
inline result<std::unique_ptr<allocator>> make_space(const tier_config& config, uint64_t bytes,
                                                     uint64_t boundary_bytes) {
  return make_allocator(config.allocator, {.capacity_bytes = bytes,
                                           .alignment_bytes = disk_alignment_bytes,
                                           .boundary_bytes = boundary_bytes,
                                           .slot_bytes = config.slot_bytes,
                                           .small_max_bytes = config.small_max_bytes,
                                           .small_percent = config.small_percent});
}

} // namespace terrace
