// Tenants and their quotas, for people and programs.
#pragma once

#include "cli/json.hpp"
#include "client/quotas.hpp"

#include <string>
#include <vector>

namespace terrace::cli {

/// Formats a row for each tenant and tier; empty without tenants.
std::string format_tenants(const std::vector<client::tenant_status>& tenants);

json tenants_json(const std::vector<client::tenant_status>& tenants);

} // namespace terrace::cli
