// ALLOCATOR: the free space of one arena, and the queue of requests waiting for it.
#pragma once

#include "actors/interfaces.hpp"
#include "metrics/tier_probe.hpp"

#include <caf/fwd.hpp>

#include <memory>

namespace terrace::actors {

struct allocator_arguments {
  std::unique_ptr<allocator> space;
  tier_actor tier; ///< makes room when the allocator asks
  uint64_t free_ahead_bytes = 0;
  size_t waiting_max = 4096;
  std::shared_ptr<metrics::tier_probe> probe; ///< probe of its tier
};

allocator_actor spawn_allocator(caf::actor_system& system, allocator_arguments arguments);

} // namespace terrace::actors
