// MEMORY: manages the host memory of one trust group at run time. It has memory committed piece by piece, and
// changes its size: new segments join the tier when they are committed, and whole segments are removed.
//
// Nothing new is placed in a segment being removed. Its objects are evicted when they are not held; the
// disk's ring unregisters it; its memory is released with the last client that has its descriptor.
#pragma once

#include "actors/supervision/group_builder.hpp"

#include <functional>

namespace terrace::actors {

struct memory_arguments {
  size_t group = 0; ///< group named in the report
  std::shared_ptr<trust_group> parts;
  uint64_t prefault_piece_bytes = 0; ///< 0: memory is committed on first access
  supervisor_actor report_to;        ///< gets `memory_prepared`
  gpu_registry_actor devices{}; ///< their processes read the memory when it is committed; null: none does
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> warn;
  bool detached = true; ///< false in tests that run blocking work on the same thread
};

/// Spawns the actor, which begins immediately. It ends on an exit message.
memory_actor spawn_memory(caf::actor_system& system, memory_arguments arguments);

} // namespace terrace::actors
