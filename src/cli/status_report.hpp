// The state of a daemon as text and JSON: at one time, and what changes between two looks at it (`terrace top`).
#pragma once

#include "cli/json.hpp"
#include "client/status.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace terrace::cli {

// The policies of a trust group, as text and JSON.

std::string format_policies(const client::policies_status& status);
json to_json(const client::policies_status& status);

// Tenants and their quotas, for people and programs.

/// Formats a row for each tenant and tier; empty without tenants.
std::string format_tenants(const std::vector<client::tenant_status>& tenants);

json tenants_json(const std::vector<client::tenant_status>& tenants);

std::string format_status(const client::daemon_status& status);
json to_json(const client::daemon_status& status);
json to_json(const client::client_status& client);

/// Shows rates, latencies, occupancy and the clients whose requests took longest between the two looks, which
/// are `elapsed` apart; at most `clients_max` clients. Counters that fell, because the daemon was restarted
/// in between, count as 0.
std::string format_top(const client::daemon_status& before, const client::daemon_status& now,
                       std::chrono::nanoseconds elapsed, size_t clients_max);

/// The same for programs.
json top_json(const client::daemon_status& before, const client::daemon_status& now,
              std::chrono::nanoseconds elapsed, size_t clients_max);

} // namespace terrace::cli
