// Objects between host memory and a tier below it.
#pragma once

#include "actors/connection/group_messages.hpp"
#include "actors/messages.hpp"
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
/// From memory that is held, to places that are reserved.
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

} // namespace terrace::actors
