// PREPARER: a thread of its own for what blocks: it allocates the disk files of a trust group and brings back what
// they hold, or commits an arena's memory piece by piece. It reports and ends.
#pragma once

#include "actors/supervision/group_builder.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

namespace terrace::actors {

/// The group's disk, open, its residents known to the policy; or why not.
struct disk_prepared {
  size_t group = 0;
  error failure;
  std::shared_ptr<opened_disk> disk; ///< the receiver takes what is in it
};

/// All of the arena is committed, or the machine has less memory.
struct memory_committed {
  error failure;
};

struct preparer_arguments {
  size_t group = 0; ///< for the report of the disk
  std::shared_ptr<segmented_arena> memory;
  uint64_t prefault_piece_bytes = 0; ///< 0: memory is committed by whoever touches it first
  std::optional<extent_files_options> disk;
  std::string state_directory; ///< has the clears that the volume has not heard of
  tier_plan disk_plan;
  group_actor spaces;  ///< gives the spaces on disk their ids
  policy_actor policy; ///< hears of the residents
  caf::actor report_to;
  bool detached = true; ///< false in tests that run everything on one thread
};

caf::actor spawn_preparer(caf::actor_system& system, preparer_arguments arguments);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::disk_prepared)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::memory_committed)
