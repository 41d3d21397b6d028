// The daemon's Unix sockets.
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

} // namespace terrace
