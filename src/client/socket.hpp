// The Unix socket of a connection: connecting and waiting with a deadline.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <string>

namespace terrace::client::detail {

/// A connected stream socket, close-on-exec, blocking. `gone` if nobody listens there.
result<unique_fd> connect_socket(const std::string& path, deadline until);

/// Requests buffers of this size; less is acceptable.
void ask_for_buffers(int socket, uint32_t bytes);

/// Waits for one of poll(2)'s `events` or an error and returns what is ready; 0 after the deadline. Checks
/// once even if the deadline has passed.
result<short> wait_for(int socket, short events, deadline until, on_signal signals = on_signal::goes_on);

/// The remaining time for the wire: 0 for no deadline, otherwise at least 1.
uint32_t milliseconds_left(deadline until);

} // namespace terrace::client::detail
