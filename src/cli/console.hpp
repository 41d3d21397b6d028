// Where a command's words go.
#pragma once

#include <cstdio>

namespace terrace::cli {

struct console {
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  bool err_is_terminal = false; ///< draw progress in place; else plain lines
};

} // namespace terrace::cli
