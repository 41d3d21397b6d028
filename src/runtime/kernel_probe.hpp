// Kernel features, probed once at start.
#pragma once

#include "base/error.hpp"
#include "runtime/io_request.hpp"

#include <cstdint>
#include <string>

namespace terrace::runtime {

struct kernel_report {
  std::string release;          ///< from uname
  ring_features features;       ///< `registered_buffers`: one page could be registered
  uint64_t memlock_bytes = 0;   ///< RLIMIT_MEMLOCK; UINT64_MAX: unlimited
  std::string describe() const; ///< one line for the log
};

/// Creates a ring, executes an operation and a wait as workers do, and destroys it. `unsupported` with a
/// one-line reason if io_uring, or one of its system calls, is denied or missing.
result<kernel_report> probe_kernel();

} // namespace terrace::runtime
