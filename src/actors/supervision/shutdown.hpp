// The order in which a daemon ends: listeners, connections, what waits for the disks, then all others, each when the ones
// before it have ended. Part of the supervisor; on its thread.
#pragma once

#include "actors/supervision/supervisor_state.hpp"

namespace terrace::actors {

/// Begins the end, once.
void drain(supervisor_pointer self);

/// One of the two timers has fired.
void grace_is_over(supervisor_pointer self, uint64_t tag);

/// Of all that the supervisor monitors: expected by the present phase, or our mistake and the begin of the end.
void somebody_ended(supervisor_pointer self, const caf::down_msg& down);

} // namespace terrace::actors
