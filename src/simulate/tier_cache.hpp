// A daemon with any number of tiers, without its bytes: which chunks are where, which leave, what hits.
#pragma once

#include "simulate/cache_counts.hpp"
#include "simulate/cache_shape.hpp"
#include "simulate/tier_contents.hpp"

#include <optional>
#include <vector>

namespace terrace::simulate {

/// When a chunk is offered to a tier below the first, which asks its admission rule.
enum class tier_writes : uint8_t {
  on_use,      ///< when it is stored, and at each later request that uses it while the tier lacks it
  on_eviction, ///< when it leaves the tier above
};

/// A tier below the first.
struct lower_tier {
  uint64_t capacity_chunks = 0;
  admission_rule admission = admission_rule::always;
  tier_writes writes = tier_writes::on_use;
};

/// Serves requests as the daemon does when `terrace replay` drives it with one client: look up under a lease, load,
/// release, store what missed, and nothing of the next request before that is done. The same events reach the tracker
/// in the same order.
///
/// A prefix may alternate between the tiers. A chunk that only lower tiers have is brought to the first and keeps its
/// copy below; a chain that is longer than the first tier is read and written past it, or loses its end when there is
/// no other.
class tier_cache {
 public:
  /// `of` must outlive it. `policies` names one policy per tier; `below` is in order, fastest first.
  tier_cache(const workload& of, const tracker_options& policies, const cache_shape& first,
             const std::vector<lower_tier>& below = {});

  void serve(const request& next);

  const cache_counts& counts() const { return counts_; }
  /// Place 0 is the first tier.
  bool holds(size_t place, chunk which) const { return tiers_[place].contents.holds(which); }
  uint64_t used(size_t place) const { return tiers_[place].contents.used(); }

 private:
  struct tier {
    tier_contents contents;
    lower_tier rules; ///< without meaning for the first
  };

  tier_contents& first() { return tiers_.front().contents; }
  bool holds_anywhere(chunk which) const;
  size_t look_up(std::span<const chunk> chain);
  void load(std::span<const chunk> run);
  void store(std::span<const chunk> rest);
  /// How many of the window were brought to the first tier; nothing when there is no room.
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
