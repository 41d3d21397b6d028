// DISK: one file of extents, that of one path of a disk tier. Submits reads and writes to the ring of its
// home worker and answers when they are done.
//
// Every byte that the kernel accesses is kept by the request's owners until its last operation has completed,
// whichever actor has ended.
//
// It also decides whether the device is in service (transfer/device_health.hpp), separately for reads and
// writes, and publishes this in `disk_service`. Out of service, it refuses immediately. After a pause it
// retries: reads by reading the superblock, which must be that of its volume; writes with one write of the
// next request.
//
// An operation that does not complete within `health.stall_after` also takes the device out of service. Its
// request is answered without it, the kernel is asked to cancel it, and the device is not retried before all
// such operations complete.
#pragma once

#include "actors/interfaces.hpp"
#include "disk/disk_queue.hpp"
#include "disk/disk_service.hpp"
#include "memory/arena.hpp"
#include "metrics/disk_probe.hpp"
#include "metrics/tier_probe.hpp"
#include "runtime/home.hpp"
#include "storage/extent_file.hpp"
#include "transfer/device_health.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

struct disk_arguments {
  std::shared_ptr<const extent_file> file;
  io_limits limits;
  health_options health;
  std::vector<std::shared_ptr<const arena>> segments; ///< memory to register as fixed buffers
  std::shared_ptr<metrics::disk_probe> probe;
  std::shared_ptr<metrics::tier_probe> tier_probe;
  std::shared_ptr<disk_service> service;
  size_t path = 0; ///< index of the file among the service's paths
  std::function<void(const std::string&)>
      warn; ///< one line when the device goes out of service, one when it is back
};

disk_actor spawn_disk(caf::actor_system& system, const runtime::home& home, disk_arguments arguments);

} // namespace terrace::actors
