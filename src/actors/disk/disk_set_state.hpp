// The state of a disk set. Private to disk_set.cpp and disk_moves.cpp.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/transfer/copier_pool.hpp"
#include "metrics/disk_probe.hpp"
#include "runtime/home.hpp"
#include "storage/disk/damage_reports.hpp"
#include "storage/disk/disk_paths.hpp"
#include "storage/disk/disk_service.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace terrace::actors {

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

} // namespace terrace::actors
