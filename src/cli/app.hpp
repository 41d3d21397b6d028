// The command line: parses arguments into a command, and turns failures into one line and an exit code.
#pragma once

#include "cli/console.hpp"
#include "cli/failure.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace terrace::cli {

/// Runs `terrace` with the arguments after the program's name. Catches everything that CLI11 throws.
exit_code run_app(const std::vector<std::string>& words, console& to);

/// The names of the commands directly below the program or a group, in the order of --help.
std::vector<std::string> command_names(const CLI::App& group);

/// "expected a command, found "stauts"; did you mean "status"?"
std::string unknown_command(const std::string& word, const CLI::App& group);

} // namespace terrace::cli
