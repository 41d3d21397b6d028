// SESSION: a conversation that has had a turn lately.
#pragma once

#include "actors/interfaces.hpp"

#include <caf/fwd.hpp>

namespace terrace::actors {

/// Spawns the actor of a session. It owns `what` until it is parked or its group ends it.
session_actor spawn_session(caf::actor_system& system, group_actor group, const session_id& id,
                            session turns);

} // namespace terrace::actors
