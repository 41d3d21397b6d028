// Capacities of a simulated tier on the command line.
#pragma once

#include "cli/failure.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::cli {

/// "5%" of the distinct chunks of a trace, or a size such as "512MiB".
struct capacity_option {
  double share = 0;   ///< above 0 if the capacity is a percentage
  uint64_t bytes = 0; ///< set otherwise
  std::string label;  ///< "5 %", "512 MiB"
};

/// Parses a comma-separated list. Failures begin with `option` and state what was expected.
outcome<std::vector<capacity_option>> parse_capacities(const std::string& option, const std::string& text);

/// Returns the parts of "a,b,c" without surrounding spaces; empty parts are kept.
std::vector<std::string> split_list(const std::string& text);

} // namespace terrace::cli
