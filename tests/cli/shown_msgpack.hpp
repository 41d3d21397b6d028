// Formats an object of msgpack as text.
#pragma once

#include <string>

namespace terrace::cli {

std::string shown(const std::string& batch);

} // namespace terrace::cli
