// The command line: parses arguments into a command, and turns failures into one line and an exit code.
#pragma once

#include "cli/console.hpp"
#include "cli/failure.hpp"

#include <string>
#include <vector>

namespace terrace::cli {

/// Runs `terrace` with the arguments after the program's name. Catches everything that CLI11 throws.
exit_code run_app(const std::vector<std::string>& words, console& to);

} // namespace terrace::cli
