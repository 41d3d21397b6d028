// WRITE-THROUGH: brings what was stored in host memory to disk as well, behind the client's back.
//
// It takes `write_through_notice`. Each notice's hold keeps its objects in host memory until they are on disk or cannot
// be: so a host tier under pressure waits for the disk instead of losing what was stored. It needs no host memory of its
// own, so it always gets on.
#pragma once

#include "actors/transfer_arguments.hpp"
#include "metrics/tier_probe.hpp"

namespace terrace::actors {

struct write_through_arguments {
  tier_actor disk_tier;
  caf::actor disk;
  std::shared_ptr<const extent_file> file;
  std::shared_ptr<segmented_arena> memory;
  std::shared_ptr<copier_pool> copiers;
  uint64_t bytes_in_progress = 128ULL
                               << 20; ///< taken from the line at a time; a single larger notice goes alone
  std::shared_ptr<metrics::tier_probe> probe; ///< of the disk tier
};

caf::actor spawn_write_through(caf::actor_system& system, write_through_arguments arguments);

} // namespace terrace::actors
