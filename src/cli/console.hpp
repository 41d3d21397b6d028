// The output and input streams of a command.
#pragma once

#include <cstdio>

namespace terrace::cli {

struct console {
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  bool err_is_terminal = false; ///< progress is redrawn in place; otherwise it is plain lines
  std::FILE* in = stdin;
  bool in_is_terminal = false;  ///< questions can be asked
  bool out_is_terminal = false; ///< refreshed output is redrawn in place
};

} // namespace terrace::cli
