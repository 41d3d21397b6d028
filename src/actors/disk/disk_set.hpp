// DISK SET: the paths of a disk tier as one. It spawns a disk and a journal for each path, sends each its part of what
// comes, and answers when the last of them has. Nobody else knows how many paths there are.
//
// It lives as long as all of them: when one ends unasked, all end; asked to end, it ends after them.
#pragma once

#include "actors/disk/disk_opening.hpp"
#include "actors/interfaces.hpp"
#include "metrics/disk_probe.hpp"
#include "metrics/journal_probe.hpp"
#include "metrics/tier_probe.hpp"
#include "runtime/home.hpp"
#include "transfer/device_health.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

/// The probes of one path.
struct path_probes {
  std::shared_ptr<metrics::disk_probe> disk = std::make_shared<metrics::disk_probe>();
  std::shared_ptr<metrics::journal_probe> journal = std::make_shared<metrics::journal_probe>();
};

struct disk_set_arguments {
  io_limits limits;
  health_options health;
  std::vector<path_probes> probes; ///< parallel to the configured paths
  std::shared_ptr<metrics::tier_probe> tier_probe;
  std::vector<std::shared_ptr<const arena>> segments; ///< memory to register as fixed buffers
  std::function<runtime::home()> place;               ///< gives each path its home
  std::function<void(const std::string&)> warn;       ///< a line for the log, from any thread
};

/// Takes the paths of `opened` and what their journals begin with. `start_journal` comes next, with the tier.
disk_set_actor spawn_disk_set(caf::actor_system& system, opened_disk& opened, disk_set_arguments arguments);

} // namespace terrace::actors
