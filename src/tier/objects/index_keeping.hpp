// Messages between a durable tier and the keeper of its index: changes, the whole index, and objects that
// must not come back.
#pragma once

#include "base/error.hpp"
#include "index/object_header.hpp"
#include "index/space_registry.hpp"
#include "memory/allocator.hpp"
#include "tier/objects/durable_index.hpp"

#include <optional>
#include <vector>

namespace terrace {

/// A durable tier sends it to the keeper of its index, in the order of the events; a disk set sends each
/// journal the changes of its path. Offsets are those of the tier's arena.
struct index_changes {
  std::vector<index_change> changes;
  space_ptr space;            ///< the space of published objects; null if there are none
  std::vector<space_id> gone; ///< spaces without objects, whose numbers are never used again
};

/// A journal sends it to its tier while it takes a checkpoint. It asks for the objects in `count` slots
/// starting at `first` that are in that part of the arena.
struct image_request {
  extent within;
  uint32_t first = 0;
  uint32_t count = 0;
};
struct image_answer {
  error failure;
  std::vector<index_change> objects;
  uint32_t next = 0;
  bool last = false;
};

/// A tier that was cleared sends it to its disk set, which sends it to all journals: objects written until
/// now must not come back. (delayed: until that is durable)
struct forget_request {
  std::optional<space_id> space; ///< absent: the whole volume
  uint64_t epoch = 0; ///< epoch of present writes: a journal that is behind forgets up to here as well
  std::optional<space_fingerprint> fingerprint{}; ///< fingerprint of the space
  bool by_other = false;                          ///< as in `clear_request`
};
struct forget_answer {
  error failure;
  uint64_t epoch = 0; ///< epoch of writes from now on
  /// From the disk set: a bit for each path of the volume where it is not durable; 0: durable on all.
  volume_id missed{};
};

} // namespace terrace
