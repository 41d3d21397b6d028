// A daemon with any number of tiers, without bytes: it tracks the location of chunks, evictions and hits.
#pragma once

#include "cli/simulate/cache_counts.hpp"
#include "cli/simulate/cache_shape.hpp"
#include "cli/simulate/tier_contents.hpp"

#include <optional>
#include <vector>

namespace terrace::simulate {

/// When a chunk is offered to a tier below the first, which then applies its admission rule.
enum class tier_writes : uint8_t {
  on_use,      ///< when it is stored, and at each later use while the tier lacks it
  on_eviction, ///< when it is evicted from the tier above
};

/// A tier below the first.
struct lower_tier {
  uint64_t capacity_chunks = 0;
  admission_rule admission = admission_rule::always;
  tier_writes writes = tier_writes::on_use;
};

/// Serves requests like a daemon that `terrace replay` drives with one client: look up under a lease, load,
/// release, store the misses, then the next request. The tracker receives the same events in the same order.
///
/// A prefix may alternate between the tiers. A chunk that only lower tiers have is copied to the first tier.
/// A chain longer than the first tier bypasses it, or is truncated if there is no other tier.
class tier_cache {
 public:
  /// `of` must outlive it. `policies` has one policy per tier; `below` is ordered, fastest first.
  tier_cache(const workload& of, const tracker_options& policies, const cache_shape& first,
             const std::vector<lower_tier>& below = {});

  void serve(const request& next);

  const cache_counts& counts() const { return counts_; }
  /// Position 0 is the first tier.
  bool holds(size_t place, chunk which) const { return tiers_[place].contents.holds(which); }
  uint64_t used(size_t place) const { return tiers_[place].contents.used(); }

 private:
  struct tier {
    tier_contents contents;
    lower_tier rules; ///< unused for the first tier
  };

  tier_contents& first() { return tiers_.front().contents; }
  bool holds_anywhere(chunk which) const;
  size_t look_up(std::span<const chunk> chain);
  void load(std::span<const chunk> run);
  void store(std::span<const chunk> rest);
  /// Returns the number of chunks of the window copied to the first tier; nothing if there is no room.
  std::optional<size_t> bring_to_first(std::span<const chunk> window);
  bool make_room(size_t place, uint64_t chunks);
  void offer(size_t place, std::span<const chunk> run);
  void insert(size_t place, std::span<const chunk> window);

  const workload& of_;
  cache_shape shape_;
  chunk_tracker tracker_;
  std::vector<tier> tiers_;
  cache_counts counts_;
};

} // namespace terrace::simulate
