// Objects between host memory and a tier below it.
#pragma once

#include "actors/connection/group_messages.hpp"
#include "actors/messages.hpp"
#include "memory/arena.hpp"
#include "tier/object_place.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace terrace::actors {

struct moved_object {
  object_key key;
  object_place place;          ///< in the tier below
  std::byte* memory = nullptr; ///< of its extent in host memory: room for a header block, then the payload
  std::optional<uint64_t> checksum{}; ///< of the payload, where it is known; for a write
};
struct moved_objects {
  space_ptr in;
  std::vector<moved_object> objects;
  context_ptr context;            ///< of the request that waits; null: of none
  std::vector<keep_alive> owners; ///< of the memory and the places, kept until nobody touches them any more
};

/// Into memory that is reserved. What is `done` has been verified: key, epoch, generation and checksum.
struct read_request : moved_objects {};
/// From memory that is held, to places that are reserved. Movers of several tiers may write the same object at once: the header
/// block in memory is the disk set's, and the others look at the payload alone.
struct write_request : moved_objects {};

enum class move_outcome : uint8_t {
  done,
  failed,  ///< this object alone: it cannot be read or is not what was expected, or was not written
  away,    ///< the device is out of service: nothing was tried, or what is there may be good once it is back
  stalled, ///< the device did not answer, and may still write into the memory
};
/// Parallel to the objects. `failure`: none of them, because the context ended or something has ended that should not.
struct move_answer {
  error failure;
  std::vector<move_outcome> outcomes;
};

/// The arena's memory is committed: a disk registers it with its ring, which pins it. Until then, and where the kernel
/// refuses, plain buffers do.
struct register_memory {};
/// The arena has another segment, which is committed.
struct add_memory {
  std::shared_ptr<const arena> segment;
};
/// Answered with `retire_answer`: nothing lies in the segment that begins there any more, and it is let go of.
struct forget_memory {
  const std::byte* begin = nullptr;
};

/// Nothing changes the tier any more.
struct close_mover_request {};
struct close_mover_answer {
  error failure; ///< what a restart will not find
};

} // namespace terrace::actors
