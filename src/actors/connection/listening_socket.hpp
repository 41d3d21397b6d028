// The sockets on which the daemon listens.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace terrace {

/// Binds and listens. A socket file without a listener (of a killed daemon) is replaced; missing directories
/// are created. Errors: `bad_request` (path too long, or not a socket), `busy` (another daemon listens
/// there), `denied`, `internal`. Blocks on the file system: call it at start.
result<unique_fd> open_listening_socket(const std::string& path, uint32_t mode);

/// Binds and listens on a numeric address of this machine; port 0: any free one. Errors: `busy` (the port is taken),
/// `internal`.
struct listening_port {
  unique_fd socket;
  uint16_t port = 0;
};
result<listening_port> open_listening_port(const std::string& host, uint16_t port);

} // namespace terrace
