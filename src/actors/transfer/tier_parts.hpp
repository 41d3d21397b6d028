// A tier of a trust group, as all that uses it sees it.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/tier/tier_availability.hpp"
#include "metrics/tier_probe.hpp"
#include "tier/tier_index.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace terrace::actors {

/// Immutable once it has joined its group, but for what it points to; any thread.
struct tier_parts {
  tier_kind kind = tier_kind::none;
  tier_actor tier;
  std::shared_ptr<const tier_index> index; ///< the tier's
  std::shared_ptr<metrics::tier_probe> probe;
  std::shared_ptr<const tier_availability> service; ///< null: it can always be used

  // Of tiers below the first:
  mover_actor mover;                 ///< between host memory and this tier
  write_through_actor write_through; ///< brings here what was stored above; null: nobody does
  bool write_new = false;            ///< stores are among that
  /// Whether what the first tier serves is offered to this one again, for it may not have it. Null: never.
  std::shared_ptr<const std::atomic<bool>> second_looks;

  bool reads() const { return !service || service->reads(); }
  bool writes() const { return !service || service->writes(); }
  std::string degraded() const {
    return service ? service->reason() : std::string();
  } ///< why; empty: it is not
};

} // namespace terrace::actors
