// DISK SET: presents the paths of a disk tier as one. It spawns a disk and a journal per path, sends each its
// part of a request, and answers when the last of them has answered. No other part depends on the number of
// paths.
//
// It lives as long as all of them: if one ends unexpectedly, all end; on an exit message it ends after them.
#pragma once

#include "actors/group/trust_group.hpp"
#include "actors/interfaces.hpp"
#include "actors/transfer/copier_actor.hpp"
#include "metrics/disk_probe.hpp"
#include "metrics/tier_probe.hpp"
#include "runtime/home.hpp"
#include "storage/disk/damage_reports.hpp"
#include "storage/disk/disk_opening.hpp"
#include "storage/disk/disk_paths.hpp"
#include "storage/disk/disk_service.hpp"
#include "tier/search/read_meter.hpp"
#include "transfer/device_health.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace terrace::actors {

// CLEAR KEEPER: a thread for one clear that a group's volume cannot record now. It writes the clear to the
// state directory, answers, and ends (storage/pending_clears.hpp).

clear_keeper_actor spawn_clear_keeper(caf::actor_system& system, group_ptr group);

// The state of a disk set. Private to disk_set.cpp and disk_moves.cpp.

struct disk_set_state {
  const char* name = "disk set";
  std::shared_ptr<const disk_paths> paths;
  bool left_out = false; ///< the volume has paths that are not in service
  std::vector<disk_actor> disks;
  std::vector<journal_actor> journals; ///< disks and journals are both indexed by path
  std::shared_ptr<copier_pool> copiers;
  std::vector<std::shared_ptr<metrics::disk_probe>> probes; ///< by path
  damage_reports damages;
  std::shared_ptr<disk_service> service;
  std::function<void(const std::string&)> warn;
  std::set<caf::actor_addr> alive;
  caf::error ending; ///< why the set ends; none while it serves
};

using disk_set_pointer = caf::stateful_actor<disk_set_state, runtime::homed<disk_set_actor::base>>*;

/// Reads the objects from their paths, then has a copier verify them.
caf::result<move_answer> on_read(disk_set_pointer self, const read_request& request);

/// Writes the objects' header blocks, itself or through a copier, then the objects to their paths.
caf::result<move_answer> on_write(disk_set_pointer self, const write_request& request);

struct disk_set_arguments {
  io_limits limits;
  health_options health;
  std::vector<metrics::path_probes> probes; ///< parallel to the configured paths
  std::shared_ptr<metrics::tier_probe> tier_probe;
  std::shared_ptr<read_meter> meter;                  ///< receives the reads of all paths; null: none
  std::vector<std::shared_ptr<const arena>> segments; ///< memory to register as fixed buffers
  std::shared_ptr<copier_pool> copiers;
  /// Devices of the daemon; null: each file has its device for itself.
  std::shared_ptr<shared_devices> devices;
  uint64_t group = 0;                           ///< number of the trust group
  std::function<runtime::home()> place;         ///< returns the home of each path
  std::function<void(const std::string&)> warn; ///< logs a line, from any thread
};

/// Takes the paths of `opened` and the initial state of their journals. `start_journal` must follow, with the
/// tier.
disk_set_actor spawn_disk_set(caf::actor_system& system, opened_disk& opened, disk_set_arguments arguments);

} // namespace terrace::actors
