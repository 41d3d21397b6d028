// What every transfer of a trust group works with.
#pragma once

#include "actors/copier_actor.hpp"
#include "actors/interfaces.hpp"
#include "memory/segmented_arena.hpp"
#include "storage/extent_file.hpp"

#include <caf/actor.hpp>

#include <atomic>
#include <memory>
#include <optional>

namespace terrace::actors {

/// The disk half of a trust group.
struct disk_parts {
  tier_actor tier;
  std::shared_ptr<const std::atomic<uint64_t>> population; ///< objects in the tier: an empty one is not asked
  caf::actor disk;          ///< disk_actor
  caf::actor write_through; ///< write_through_actor; takes `write_through_notice`
  bool write_new = true;    ///< stores go to disk as well
  std::shared_ptr<const extent_file> file;
  store_identity store() const { return {file->store(), file->epoch()}; }
};

/// The actors and the arena of a trust group. Immutable once it serves; shared by all that works for the group.
struct group_parts {
  std::string name;
  std::string path; ///< of its first socket
  bool isolated = false;
  group_actor group;
  policy_actor policy;
  tier_actor host;
  std::shared_ptr<const std::atomic<uint64_t>> host_population;
  std::shared_ptr<segmented_arena> memory; ///< the host tier's
  std::optional<disk_parts> disk;
  std::string disk_refusal;                 ///< why a disk tier that was asked for is not there; empty otherwise
  std::shared_ptr<copier_pool> copiers;
  uint64_t window_bytes = 64ULL << 20; ///< a transfer holds at most so much of the arena at a time
};
using group_ptr = std::shared_ptr<const group_parts>;

} // namespace terrace::actors
