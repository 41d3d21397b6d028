// The actor for `connection`: runs on its home worker and turns completions and messages into calls.
#pragma once

#include "actors/connection/connection.hpp"

namespace terrace::actors {

/// Spawns the connection at that home; it is in the directory before this returns.
connection_actor spawn_connection(caf::actor_system& system, const runtime::home& home, unique_fd socket,
                                  peer who, connection_id id,
                                  std::shared_ptr<const connection_environment> environment);

} // namespace terrace::actors
