// The state of a daemon as text and JSON.
#pragma once

#include "cli/json.hpp"
#include "client/status.hpp"

#include <string>

namespace terrace::cli {

std::string format_status(const client::daemon_status& status);
json to_json(const client::daemon_status& status);
json to_json(const client::client_status& client);

} // namespace terrace::cli
