// Wakes an HTTP server that has been told to stop.
#pragma once

#include "metrics/loopback_address.hpp"

namespace terrace::metrics {

/// Sends one small request and waits for the end of its answer, or until `stopped`, an eventfd, is readable: a server
/// that stops may leave a connection unanswered in its queue. False once there is no need to knock again.
///
/// Civetweb, the server inside prometheus-cpp, looks at its stop flag only when a connection comes in or two seconds
/// have passed. A caller that knocks until this is false stops it within milliseconds, or, when the last knock came in
/// just before the flag and stays unanswered, after those two seconds.
bool knock(const loopback_address& address, int stopped);

} // namespace terrace::metrics
