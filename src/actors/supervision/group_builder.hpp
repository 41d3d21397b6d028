// Makes the actors of a trust group.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/disk/disk_opening.hpp"
#include "actors/disk/disk_set.hpp"
#include "actors/tier/policy_clock.hpp"
#include "actors/tier/shadow_actor.hpp"
#include "actors/tier/tier_plan.hpp"
#include "actors/transfer/write_through_actor.hpp"
#include "metrics/tier_probe.hpp"
#include "runtime/workers.hpp"
#include "transfer/device_health.hpp"
#include "transfer/io_scheduler.hpp"

namespace terrace::actors {

/// A trust group as it is configured.
struct group_plan {
  std::string name;
  std::string path; ///< of its first socket
  bool isolated = false;
  clock_source policy_time = clock_source::steady;
  tier_plan host;
  uint64_t segment_bytes = 1ULL << 30;
  bool huge_pages = false;
  std::optional<uint32_t> numa_node;
  std::optional<tier_plan> disk;
  std::vector<std::string> disk_files; ///< one for each path, also without a disk
  std::string state_directory;         ///< for clears that a volume cannot be told
  bool detached = true;                ///< false in tests that run what blocks on their own thread
  mismatch_rule on_mismatch = mismatch_rule::refuse; ///< of files that are no store of this machine and group
  io_limits disk_io;
  health_options disk_health;
  disk_admission admission;
  bool write_new = true;
  std::vector<shadow_plan> shadows;
};

/// The probes of a group; registered with the exposition by whoever makes them.
struct group_probes {
  std::shared_ptr<metrics::tier_probe> host = std::make_shared<metrics::tier_probe>();
  std::shared_ptr<metrics::tier_probe> disk_tier = std::make_shared<metrics::tier_probe>();
  std::shared_ptr<metrics::shadow_probe> shadow =
      std::make_shared<metrics::shadow_probe>();                ///< without lines
  std::vector<path_probes> paths = std::vector<path_probes>(1); ///< parallel to the disk's files
  std::shared_ptr<metrics::client_probe> clients = std::make_shared<metrics::client_probe>();
  std::shared_ptr<metrics::request_probe> requests = std::make_shared<metrics::request_probe>();
};

/// The group without its disk, ready to serve. Errors: the arena's, the allocator's.
result<std::shared_ptr<group_parts>> build_group(caf::actor_system& system, const group_plan& plan,
                                                 const group_probes& probes,
                                                 std::shared_ptr<copier_pool> copiers);

/// The disk half, once its files are open. `place` gives each path its home. `warn`: a line for the log, from any thread.
void join_disk(
    caf::actor_system& system, group_parts& group, const group_plan& plan, const group_probes& probes,
    const std::function<runtime::home()>& place, opened_disk disk,
    std::function<void(const std::string&)> warn = [](const std::string&) {});

/// Those of them that joined with the disk.
std::vector<caf::actor> actors_of_disk(const group_parts& group);

/// The long-lived actors of a group, in the order in which they end: from those that ask to those that are asked.
std::vector<caf::actor> actors_of(const group_parts& group);

} // namespace terrace::actors
