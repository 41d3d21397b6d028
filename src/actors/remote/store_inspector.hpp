// STORE INSPECTOR: asks a remote store for an operator: whether it can be used, step by step, or which values clears have left
// behind. It has connections of its own, one to each node of a cluster, so that it proves what the daemon's connections need and delays none of them. One for
// each request; it ends with the answer.
//
// A sweep asks for a bounded number of keys in a second, and holds no worker meanwhile. It reads all tokens of clears after it has
// seen the values that it removes, so it removes none that any machine finds (remote/stale_values.hpp).
#pragma once

#include "actors/interfaces.hpp"
#include "actors/remote/remote_plan.hpp"
#include "remote/slot_map.hpp"
#include "remote/store_reports.hpp"
#include "runtime/home.hpp"

namespace terrace::actors {

struct inspected_store {
  remote_plan plan;       ///< its address is that of the server, unless the store is a cluster
  remote::slot_map slots; ///< of the cluster
};

store_inspector_actor spawn_store_inspector(caf::actor_system& system, const runtime::home& home,
                                            inspected_store store);

} // namespace terrace::actors
