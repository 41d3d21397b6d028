// The messages that keep a disk tier's index on its disk.
#pragma once

#include "actors/connection/group_messages.hpp"
#include "actors/tier/durable_index.hpp"

#include <optional>
#include <vector>

namespace terrace::actors {

/// From a tier, in the order in which it happened; to each journal what lies on its path, with offsets in the arena of that
/// path.
struct index_changes {
  std::vector<index_change> changes;
  space_ptr of; ///< the space of what was published; null when nothing was
};

/// From a journal to its tier, while it takes a checkpoint: what of its path is in `count` slots from `first` on?
struct image_request {
  size_t path = 0;
  uint32_t first = 0;
  uint32_t count = 0;
};
struct image_answer {
  error failure;
  std::vector<index_change> objects;
  uint32_t next = 0;
  bool last = false;
};

/// From a tier that was cleared, to all its journals: what was written until now must not come back. (delayed: until that
/// is durable)
struct forget_request {
  std::optional<space_id> space; ///< or all of the store
  uint64_t epoch = 0; ///< of what is written now: a journal that is behind forgets up to here as well
};
struct forget_answer {
  error failure;
  uint64_t epoch = 0; ///< of what is written from now on
};

/// From the supervisor, when nothing changes the tier any more. (delayed: until a checkpoint holds all of it, or could not
/// be written)
struct close_journal_request {};
struct close_journal_answer {
  error failure;
};

} // namespace terrace::actors
