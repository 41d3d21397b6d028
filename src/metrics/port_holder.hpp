// Finds the process that listens on a TCP port of this machine, for the message that the port is taken.
#pragma once

#include "base/loopback_address.hpp"

#include <string>

namespace terrace::metrics {

/// Returns "process 4711 (node_exporter)"; "another process" if its descriptors are not visible to this user;
/// empty if nobody listens there. Reads /proc and blocks.
std::string port_holder(const loopback_address& at);

} // namespace terrace::metrics
