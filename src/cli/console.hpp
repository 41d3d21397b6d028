// Where a command's words go and answers come from.
#pragma once

#include <cstdio>

namespace terrace::cli {

struct console {
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  bool err_is_terminal = false; ///< draw progress in place; else plain lines
  std::FILE* in = stdin;
  bool in_is_terminal = false; ///< somebody can be asked
};

} // namespace terrace::cli
