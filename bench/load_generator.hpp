// Many clients in one thread, each with one request in flight. The same for Terrace and for its limit.
#pragma once

#include "base/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace terrace::bench {

/// Sends `request` on every socket, and again as soon as `answer_bytes` have come back, for so long. Answers a second.
/// Every request has been answered when it returns.
double requests_per_second(std::span<const unique_fd> sockets, std::span<const uint8_t> request,
                           size_t answer_bytes, double seconds);

} // namespace terrace::bench
