// MEMORY: one trust group's host memory while the daemon runs. It has the memory committed piece by piece, and changes its
// size: new segments join the tier when they are committed, whole segments leave it.
//
// A segment that leaves takes no new objects from then on. What lies there leaves when nobody holds it; the ring of the
// disk lets go of it; its memory goes with the last client that was given its descriptor.
#pragma once

#include "actors/supervision/group_builder.hpp"
#include "metrics/exposition.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <functional>

namespace terrace::actors {

/// From the supervisor: the arena shall have `bytes`. A change that is not through yet comes first, and of several that
/// wait for it the last counts.
struct resize_memory {
  uint64_t bytes = 0;
};

/// To the supervisor, once: the arena that the group began with is committed, or the machine has less memory than was
/// configured.
struct memory_prepared {
  size_t group = 0;
  error failure;
};

struct memory_arguments {
  size_t group = 0; ///< for the report
  std::shared_ptr<group_parts> parts;
  uint64_t prefault_piece_bytes = 0; ///< 0: memory is committed by whoever touches it first
  caf::actor report_to;
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> warn;
  bool detached = true; ///< false in tests that run what blocks on the same thread as all else
};

/// Begins at once. Ends on an exit message.
caf::actor spawn_memory(caf::actor_system& system, memory_arguments arguments);

/// Gauges of what the tier's allocator does not know of its arena.
void expose_memory(metrics::exposition& exposition, std::shared_ptr<const segmented_arena> memory,
                   const metrics::labels& of);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::resize_memory)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::memory_prepared)
