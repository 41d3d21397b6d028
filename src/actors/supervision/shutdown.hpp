// The order of shutdown: listeners, connections, pending disk writes, then all others, each when the previous
// ones have ended. Part of the supervisor; runs on its thread.
#pragma once

#include "actors/supervision/supervisor_state.hpp"

namespace terrace::actors {

/// Begins the shutdown, once.
void on_drain(supervisor_pointer self);

/// One of the two timers has fired.
void on_grace_over(supervisor_pointer self, uint64_t tag);

/// Called for all monitored actors: the end is expected in the present phase, or is a bug that starts the
/// shutdown.
void on_actor_down(supervisor_pointer self, const caf::down_msg& down);

} // namespace terrace::actors
