// Creates the actors of a trust group.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/disk/disk_set.hpp"
#include "actors/tier/shadow_actor.hpp"
#include "actors/transfer/write_through_actor.hpp"
#include "disk/disk_opening.hpp"
#include "metrics/tier_probe.hpp"
#include "runtime/workers.hpp"
#include "tier/policy_clock.hpp"
#include "tier/tier_plan.hpp"
#include "transfer/device_health.hpp"
#include "transfer/io_scheduler.hpp"

namespace terrace::actors {

/// The configuration of a trust group.
struct group_plan {
  std::string name;
  uint64_t number = 1; ///< another one for each group
  std::string path;    ///< of its first socket
  bool isolated = false;
  size_t spaces_max = 65'536; ///< open or with objects
  clock_source policy_time = clock_source::steady;
  tier_plan host;
  uint64_t segment_bytes = 1ULL << 30;
  bool huge_pages = false;
  std::optional<uint32_t> numa_node;
  teardown_ptr teardown; ///< releases segments; null: whoever has the last reference
  std::optional<tier_plan> disk;
  std::vector<std::string> disk_files; ///< one per path, also without a disk
  std::string state_directory;         ///< for clears that a volume cannot record
  bool detached = true;                ///< false in tests that run blocking work on their own thread
  mismatch_rule on_mismatch =
      mismatch_rule::refuse; ///< for files that are not a volume of this machine and group
  io_limits disk_io;
  health_options disk_health;
  disk_admission admission;
  bool write_new = true;
  lease_bounds leases;
  std::vector<shadow_plan> shadows;
  std::vector<std::pair<tier_kind, std::string>>
      more_tiers; ///< of further tiers that will join: kind and policy
};

/// A tier below the first that is ready to join.
struct lower_tier {
  tier_kind kind = tier_kind::none;
  tier_plan plan;
  std::unique_ptr<allocator> space;
  std::unique_ptr<residency> objects; ///< the objects whose extents `space` contains; null: none
  mover_actor mover;
  index_keeper keeper; ///< persists its index; null: it does not survive restarts
  std::shared_ptr<const tier_availability> service; ///< null: always in service
  std::shared_ptr<metrics::tier_probe> probe = std::make_shared<metrics::tier_probe>();
  disk_admission admission;
  bool write_new = true;                        ///< also write new stores
  uint64_t write_bytes_in_progress = 128 << 20; ///< bytes written at a time
};

/// The probes of a group; registered with the exposition by their creator.
struct group_probes {
  std::shared_ptr<metrics::tier_probe> host = std::make_shared<metrics::tier_probe>();
  std::shared_ptr<metrics::tier_probe> disk_tier = std::make_shared<metrics::tier_probe>();
  std::shared_ptr<metrics::shadow_probe> shadow =
      std::make_shared<metrics::shadow_probe>();                ///< without lines
  std::vector<path_probes> paths = std::vector<path_probes>(1); ///< parallel to the disk's files
  std::shared_ptr<metrics::client_probe> clients = std::make_shared<metrics::client_probe>();
  std::shared_ptr<metrics::request_probe> requests = std::make_shared<metrics::request_probe>();
};

/// Creates the group without its disk, ready to serve. Errors: the arena's, the allocator's.
result<std::shared_ptr<group_parts>> build_group(caf::actor_system& system, const group_plan& plan,
                                                 const group_probes& probes,
                                                 std::shared_ptr<copier_pool> copiers);

/// Spawns the tier and its write-through, and adds the tier to the group.
void join_tier(caf::actor_system& system, group_parts& group, lower_tier below);

/// Adds the disk tier, once its files are open. `place` returns the home of each path. `warn`: a line for the
/// log, from any thread.
void join_disk(
    caf::actor_system& system, group_parts& group, const group_plan& plan, const group_probes& probes,
    const std::function<runtime::home()>& place, opened_disk disk,
    std::function<void(const std::string&)> warn = [](const std::string&) {});

/// The actors of one tier, in the order in which they end.
std::vector<caf::actor> actors_of(const tier_parts& tier);

/// The long-lived actors of a group in the order of shutdown: from those that ask to those that are asked.
std::vector<caf::actor> actors_of(const group_parts& group);

} // namespace terrace::actors
