// LINK: the process of a GPU. It opens the device, maps what the daemon sends, and passes copies to its streams.
//
// Driver calls may block here: nothing else runs in this process that anybody waits for. If one hangs, the daemon kills
// the process.
#pragma once

#include "base/unique_fd.hpp"
#include "runtime/workers.hpp"

#include <caf/fwd.hpp>

#include <string>

namespace terrace::actors {

/// Serves the daemon at the other end of `socket`, on three workers. The process ends with the socket.
void spawn_link(caf::actor_system& system, runtime::workers workers, unique_fd socket, std::string device);

} // namespace terrace::actors
