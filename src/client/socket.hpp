// The Unix socket of a connection: connecting within a time, and waiting for it.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <string>

namespace terrace::client::detail {

/// A connected stream socket, close-on-exec, blocking. `gone` when nobody listens there.
result<unique_fd> connect_socket(const std::string& path, deadline until);

/// Asks for buffers of this size; what the kernel grants is good enough.
void ask_for_buffers(int socket, uint32_t bytes);

/// Waits until one of poll(2)'s `events` (or an error) is there and gives what is; 0 when the time is up. A time that
/// has passed already still looks once.
result<short> wait_for(int socket, short events, deadline until);

/// What is left, for the wire: 0 for no deadline, otherwise at least 1.
uint32_t milliseconds_left(deadline until);

} // namespace terrace::client::detail
