// PREPARER: a thread for blocking work: it allocates the disk files of a trust group and recovers their
// contents, or commits an arena's memory piece by piece. It reports and ends.
#pragma once

#include "actors/supervision/group_builder.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

namespace terrace::actors {

/// The group's disk is open and its residents known to the policy; or the reason why not.
struct disk_prepared {
  size_t group = 0;
  error failure;
  std::shared_ptr<opened_disk> disk; ///< the receiver takes its contents
};

/// All of the arena is committed, or the machine has less memory.
struct memory_committed {
  error failure;
};

struct preparer_arguments {
  size_t group = 0; ///< for the report of the disk
  std::shared_ptr<segmented_arena> memory;
  uint64_t prefault_piece_bytes = 0; ///< 0: memory is committed on first access
  std::optional<extent_files_options> disk;
  std::string state_directory; ///< contains clears that the volume has not applied
  tier_plan disk_plan;
  group_actor spaces;  ///< assigns ids to the spaces on disk
  policy_actor policy; ///< receives the residents
  caf::actor report_to;
  bool detached = true; ///< false in tests that run everything on one thread
};

caf::actor spawn_preparer(caf::actor_system& system, preparer_arguments arguments);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::disk_prepared)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::memory_committed)
