// Wakes an HTTP server that is stopping.
#pragma once

#include "base/loopback_address.hpp"

namespace terrace::metrics {

/// Sends one small request and waits for the end of its answer, or until `stopped`, an eventfd, is readable:
/// a stopping server may leave a connection in its queue unanswered. False once no further call is needed.
///
/// Civetweb, the server in prometheus-cpp, checks its stop flag only when a connection arrives or after two
/// seconds. Calling this until it returns false stops the server within milliseconds; or, if the last request
/// arrived just before the flag was set and stays unanswered, after those two seconds.
bool knock(const loopback_address& address, int stopped);

} // namespace terrace::metrics
