// DISK: one file of extents, that of one path of a disk tier. It submits reads and writes to the ring of its home worker and answers when they are done.
//
// Every byte that the kernel touches is kept by the request's owners until its last operation completed, whoever has ended
// meanwhile.
//
// It also decides whether the device is to be used (transfer/device_health.hpp), for reads and writes apart, and says so
// in `disk_service`. Out of service, it refuses at once. After a pause in the ring it tries again: by reading the
// superblock, which must be that of its store; by one write of a request that comes then.
//
// An operation that does not come back in `health.stall_after` takes the device out of service as well. Its request is
// answered without it, the kernel is asked to end it, and the device is not tried again before all such operations have come back.
#pragma once

#include "actors/disk/disk_queue.hpp"
#include "actors/disk/disk_service.hpp"
#include "actors/interfaces.hpp"
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
  size_t path = 0;                              ///< which of the service's paths the file is
  std::function<void(const std::string&)> warn; ///< one line when it goes out of service, one when it is back
};

disk_actor spawn_disk(caf::actor_system& system, const runtime::home& home, disk_arguments arguments);

} // namespace terrace::actors
