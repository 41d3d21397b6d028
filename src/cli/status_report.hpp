// The state of a daemon as text and JSON.
#pragma once

#include "cli/json.hpp"
#include "client/policies.hpp"
#include "client/status.hpp"

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

} // namespace terrace::cli
