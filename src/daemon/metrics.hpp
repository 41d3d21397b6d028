// Adds what the daemon's probes show to its metrics.
#pragma once

#include "actors/supervision/supervisor_actor.hpp"
#include "runtime/workers.hpp"

namespace terrace {

/// Adds the tiers, clients and requests of a trust group, and the bytes of its regions. `redis`: it has a socket for Redis clients.
void expose_group(metrics::exposition& exposition, const group_plan& plan, const group_probes& probes,
                  const region_budget_ptr& regions, bool redis);

/// Adds the workers' counters and turns.
void expose_workers(metrics::exposition& exposition, const runtime::workers& workers);

} // namespace terrace
