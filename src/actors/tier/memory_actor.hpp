// MEMORY: one trust group's host memory while the daemon runs. It has the memory committed piece by piece, and changes its
// size: new segments join the tier when they are committed, whole segments leave it.
//
// A segment that leaves takes no new objects from then on. What lies there leaves when nobody holds it; the ring of the
// disk lets go of it; its memory goes with the last client that was given its descriptor.
#pragma once

#include "actors/supervision/group_builder.hpp"
#include "actors/tier/memory_messages.hpp"
#include "metrics/exposition.hpp"

#include <functional>

namespace terrace::actors {

struct memory_arguments {
  size_t group = 0; ///< for the report
  std::shared_ptr<group_parts> parts;
  uint64_t prefault_piece_bytes = 0; ///< 0: memory is committed by whoever touches it first
  caf::actor report_to;              ///< gets `memory_prepared`
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> warn;
  bool detached = true; ///< false in tests that run what blocks on the same thread as all else
};

/// Begins at once. Ends on an exit message.
memory_actor spawn_memory(caf::actor_system& system, memory_arguments arguments);

/// Gauges of what the tier's allocator does not know of its arena.
void expose_memory(metrics::exposition& exposition, std::shared_ptr<const segmented_arena> memory,
                   const metrics::labels& of);

} // namespace terrace::actors
