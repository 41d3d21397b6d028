// DISK SET: presents the paths of a disk tier as one. It spawns a disk and a journal per path, sends each its
// part of a request, and answers when the last of them has answered. No other part depends on the number of
// paths.
//
// It lives as long as all of them: if one ends unexpectedly, all end; on an exit message it ends after them.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/transfer/copier_pool.hpp"
#include "metrics/path_probes.hpp"
#include "metrics/tier_probe.hpp"
#include "runtime/home.hpp"
#include "storage/disk/disk_opening.hpp"
#include "storage/disk/shared_devices.hpp"
#include "tier/search/read_meter.hpp"
#include "transfer/device_health.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

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
