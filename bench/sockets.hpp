// Unix stream sockets with large buffers, and whole reads and writes on them.
#pragma once

#include "base/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace terrace::bench {

/// Returns both ends of a connected pair, each with 1 MiB requested in both directions.
std::pair<unique_fd, unique_fd> socket_pair();

/// Connects to a listening socket, with buffers as above.
unique_fd connect_to(const std::string& path);

/// Returns false at the end of the stream or at any error.
bool read_all(int fd, std::span<uint8_t> into);
bool write_all(int fd, std::span<const uint8_t> from);

} // namespace terrace::bench
