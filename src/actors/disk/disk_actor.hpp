// DISK: one file of extents, that of one path of a disk tier. It submits reads and writes to the ring of its
// home worker and answers when they are done.
//
// The request's owners keep every byte that the kernel accesses until its last operation has completed,
// whichever actor has ended.
//
// storage/disk/disk_path.hpp decides whether the path is in service, and what is tried when.
#pragma once

#include "actors/interfaces.hpp"
#include "memory/arena.hpp"
#include "runtime/home.hpp"
#include "storage/disk/disk_path.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

struct disk_arguments {
  disk_path_arguments path;
  std::vector<std::shared_ptr<const arena>> segments; ///< memory to register as fixed buffers
  std::function<void(const std::string&)>
      warn; ///< writes one line when the device goes out of service, and one when it is back
};

disk_actor spawn_disk(caf::actor_system& system, const runtime::home& home, disk_arguments arguments);

} // namespace terrace::actors
