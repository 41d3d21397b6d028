// The kernel's io_uring.
#pragma once

#include "base/error.hpp"
#include "runtime/io_request.hpp"
#include "runtime/ring.hpp"
#include "runtime/runtime_options.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace::runtime {

/// Creates a ring that belongs to the calling thread. Requests SINGLE_ISSUER, DEFER_TASKRUN, COOP_TASKRUN and
/// TASKRUN_FLAG and uses what the kernel grants. `unsupported` if it grants no ring at all, with a text that
/// says what to change.
result<std::unique_ptr<ring>> make_uring(const runtime_options& options);

/// One line with the reason why this system call of io_uring failed with this errno, and the fix.
std::string explain_ring_error(const std::string& call, int error_number);

/// A ring that fails every operation with -`error_number` and only sleeps and wakes, so that a worker whose
/// ring could not be created still runs actors and shuts down in order.
std::unique_ptr<ring> make_refusing_ring(int error_number);

// Kernel features, probed once at start.

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
