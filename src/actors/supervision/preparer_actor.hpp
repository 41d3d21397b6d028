// PREPARER: a thread for blocking work. It allocates the disk files of a trust group and recovers their
// contents, or commits an arena's memory piece by piece. It reports and ends.
#pragma once

#include "actors/supervision/group_builder.hpp"

namespace terrace::actors {

struct preparer_arguments {
  size_t group = 0; ///< group named in the report of the disk
  std::shared_ptr<segmented_arena> memory;
  uint64_t prefault_piece_bytes = 0; ///< 0: memory is committed on first access
  std::optional<extent_files_options> disk;
  std::string state_directory; ///< contains clears that the volume has not applied
  tier_config disk_plan;
  group_actor spaces;   ///< assigns ids to the spaces on disk
  policy_actor policy;  ///< receives the residents
  caf::actor report_to; ///< gets `disk_prepared` or `memory_committed`
  bool detached = true; ///< false in tests that run everything on one thread
};

preparer_actor spawn_preparer(caf::actor_system& system, preparer_arguments arguments);

} // namespace terrace::actors
