// How much a simulated tier holds, as people write it.
#pragma once

#include "cli/failure.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::cli {

/// "5%" of the distinct chunks of a trace, or a size such as "512MiB".
struct capacity_option {
  double share = 0;   ///< above 0 when given as a share
  uint64_t bytes = 0; ///< otherwise
  std::string label;  ///< "5 %", "512 MiB"
};

/// Comma-separated. Failures begin with `option` and say what was expected.
outcome<std::vector<capacity_option>> parse_capacities(const std::string& option, const std::string& text);

/// The parts of "a,b,c", without spaces around them; empty ones stay.
std::vector<std::string> split_list(const std::string& text);

} // namespace terrace::cli
