// LINK: the process of a GPU. It opens the device, maps what the daemon sends, and passes copies to its streams.
//
// Driver calls may block here: nothing else runs in this process that anybody waits for. If one hangs, the daemon kills
// the process.
#pragma once

#include "base/unique_fd.hpp"
#include "gpu/process/device_child.hpp"
#include "runtime/home.hpp"

#include <caf/actor.hpp>

#include <cstdlib>
#include <functional>
#include <string>

namespace terrace::actors {

struct link_arguments {
  unique_fd socket;
  std::string device;
  /// A driver call of one does not hold up the others.
  runtime::home messages, loads, stores;
  std::function<result<gpu::opened_device>(const std::string&)> open = gpu::open_device;
  /// Ends the process, with the daemon or because the device is lost. The kernel and the driver reclaim what is left.
  std::function<void(int code)> end = std::_Exit;
};

/// Serves the daemon at the other end of the socket, and ends the process with it.
caf::actor spawn_link(caf::actor_system& system, link_arguments with);

} // namespace terrace::actors
