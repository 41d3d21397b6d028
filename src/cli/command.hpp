// The interface of commands. To add one, write its file and list it in commands.cpp.
#pragma once

#include "cli/console.hpp"
#include "cli/failure.hpp"

#include <memory>
#include <span>

namespace CLI {
class App;
}

namespace terrace::cli {

/// One command of one invocation: declares its options, which CLI11 fills, then runs. Not reused.
class command {
 public:
  virtual ~command() = default;

  /// Binds options to members; `app` outlives the command's run.
  virtual void declare(CLI::App& app) = 0;

  /// Blocks until done. Text or JSON is written to `console.out`, progress and warnings to `console.err`.
  virtual outcome<exit_code> run(console& console) = 0;
};

struct command_entry {
  const char* name;     ///< "status", or "trace generate" for a command inside a group
  const char* summary;  ///< a line of `terrace --help`
  const char* examples; ///< shown at the end of the command's `--help`; lines indented by two
  std::unique_ptr<command> (*make)();
};

/// All commands in the order in which --help lists them.
std::span<const command_entry> commands();

} // namespace terrace::cli
