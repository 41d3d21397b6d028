// The terrace command.

#include "base/unique_fd.hpp"
#include "cli/app.hpp"

#include <csignal>
#include <unistd.h>

int main(int argc, char** argv) {
  terrace::occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN); // `terrace ... | head` then ends with a failed write, not by a signal
  terrace::cli::console to{stdout,
                           stderr,
                           isatty(STDERR_FILENO) == 1,
                           stdin,
                           isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1,
                           isatty(STDOUT_FILENO) == 1};
  return static_cast<int>(terrace::cli::run_app({argv + 1, argv + argc}, to));
}
