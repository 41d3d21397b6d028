// Creates the actors of a trust group.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/disk/disk_set.hpp"
#include "actors/supervision/group_plan.hpp"
#include "actors/supervision/group_probes.hpp"
#include "actors/tier/policy_actor.hpp"
#include "actors/tier/tier_actor.hpp"
#include "actors/transfer/write_through_actor.hpp"
#include "metrics/tier_probe.hpp"
#include "runtime/home.hpp"
#include "storage/disk/disk_opening.hpp"

namespace terrace::actors {

/// Creates the group without its disk, ready to serve. Errors: the arena's, the allocator's.
result<std::shared_ptr<trust_group>> build_group(caf::actor_system& system, const group_plan& plan,
                                                 const group_probes& probes,
                                                 std::shared_ptr<copier_pool> copiers);

/// Spawns the tier and its write-through, and adds the tier to the group. `tier`: its configuration, mover, service and
/// probes; the rest of the handle is set here.
void join_tier(caf::actor_system& system, trust_group& group, tier_handle tier, tier_start start);

/// Adds the disk tier, once its files are open. `place` returns the home of each path. `warn` logs a line,
/// from any thread. `devices`: those of the daemon; null: no other group uses the group's devices.
void join_disk(
    caf::actor_system& system, trust_group& group, const group_plan& plan, const group_probes& probes,
    const std::function<runtime::home()>& place, opened_disk disk,
    std::function<void(const std::string&)> warn = [](const std::string&) {},
    std::shared_ptr<shared_devices> devices = nullptr);

/// Adds the group's tier in memory of a device. `warn`: as above. Errors: the allocator's.
result<void> join_gpu_tier(caf::actor_system& system, trust_group& group, const group_plan& plan,
                           const group_probes& probes, const gpu_registry_actor& devices,
                           std::function<void(const std::string&)> log,
                           std::function<void(const std::string&)> warn);

struct remote_homes {
  runtime::home writer; ///< of what is to be written there
  runtime::home store;  ///< of the connections
};

/// Adds one of the group's remote tiers. Errors: the allocator's.
result<void> join_remote_tier(caf::actor_system& system, const std::shared_ptr<trust_group>& group,
                              const remote_plan& plan, const remote_probes& probes, const remote_homes& at,
                              std::function<void(const std::string&)> log,
                              std::function<void(const std::string&)> warn);

/// The actors of one tier, in the order in which they end.
std::vector<caf::actor> actors_of(const tier_handle& tier);

/// The long-lived actors of a group in the order of shutdown: from those that ask to those that are asked.
std::vector<caf::actor> actors_of(const trust_group& group);

} // namespace terrace::actors
