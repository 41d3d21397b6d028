// A program that a command runs to its end.
#pragma once

#include "cli/failure.hpp"

#include <string>
#include <vector>

namespace terrace::cli {

struct program_end {
  int code = 0;       ///< 128 and the signal's number if it was ended by one
  std::string output; ///< of both streams together
};

/// Runs the program, whose name is the first word and is looked for in PATH if it has no slash, and waits for it. `variables`
/// ("NAME=value") come before those of this process. Failure: it cannot be started.
outcome<program_end> run_program(std::vector<std::string> words, std::vector<std::string> variables = {});

} // namespace terrace::cli
