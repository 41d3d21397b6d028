// How a group's disk joins while the daemon serves: its files are opened by a preparer, their locks waited for, and its actors
// spawned. Part of the supervisor; on its thread.
#pragma once

#include "actors/supervision/preparer_actor.hpp"
#include "actors/supervision/supervisor_state.hpp"

namespace terrace::actors {

/// Begins to open the group's disk, if it has one.
void prepare_disk(supervisor_pointer self, size_t group);

/// It is open, or why not: it joins, waits for its lock, or is off.
void disk_is_prepared(supervisor_pointer self, const disk_prepared& report);

/// The poll for the lock of a group's disk has ended.
void lock_is_free(supervisor_pointer self, size_t group, int32_t result);

/// Memory is registered with the disk's ring once both are there.
void register_with_disk(supervisor_pointer self, size_t group);

} // namespace terrace::actors
