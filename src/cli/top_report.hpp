// Formats what changes in a daemon between two looks at its status.
#pragma once

#include "cli/json.hpp"
#include "client/status.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace terrace::cli {

/// Shows rates, latencies, occupancy and the clients whose requests took longest between the two looks, which
/// are `elapsed` apart; at most `clients_max` clients. Counters that fell, because the daemon was restarted
/// in between, count as 0.
std::string format_top(const client::daemon_status& before, const client::daemon_status& now,
                       std::chrono::nanoseconds elapsed, size_t clients_max);

/// The same for programs.
json top_json(const client::daemon_status& before, const client::daemon_status& now,
              std::chrono::nanoseconds elapsed, size_t clients_max);

} // namespace terrace::cli
