// Many clients in one thread, each with one request in flight, for Terrace and for its limit.
#pragma once

#include "base/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace terrace::bench {

/// Sends `request` on every socket, and again as soon as `answer_bytes` have come back, for `seconds`.
/// Returns answers per second. When it returns, every request has been answered.
double requests_per_second(std::span<const unique_fd> sockets, std::span<const uint8_t> request,
                           size_t answer_bytes, double seconds);

} // namespace terrace::bench
