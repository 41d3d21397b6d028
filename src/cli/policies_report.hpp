// The policies of a trust group, as text and JSON.
#pragma once

#include "cli/json.hpp"
#include "client/policies.hpp"

#include <string>

namespace terrace::cli {

std::string format_policies(const client::policies_status& status);
json to_json(const client::policies_status& status);

} // namespace terrace::cli
