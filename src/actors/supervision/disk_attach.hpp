// Adding a group's disk while the daemon serves: a preparer opens its files, their locks are waited for, and
// its actors are spawned. Part of the supervisor; runs on its thread.
#pragma once

#include "actors/supervision/preparer_actor.hpp"
#include "actors/supervision/supervisor_state.hpp"

namespace terrace::actors {

/// Starts opening the group's disk, if it has one.
void prepare_disk(supervisor_pointer self, size_t group);

/// Handles the result: the disk is added, waits for its lock, or is off.
void on_disk_prepared(supervisor_pointer self, const disk_prepared& report);

/// Called when the poll for the lock of a group's disk has ended.
void on_lock_free(supervisor_pointer self, size_t group, int32_t result);

/// Registers memory with the disk's ring once both are available.
void register_with_disk(supervisor_pointer self, size_t group);

} // namespace terrace::actors
