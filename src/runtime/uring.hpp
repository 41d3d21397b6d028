// The kernel's io_uring.
#pragma once

#include "base/error.hpp"
#include "runtime/ring.hpp"
#include "runtime/runtime_options.hpp"

#include <memory>
#include <string>

namespace terrace::runtime {

/// Creates a ring that belongs to the calling thread. Asks for SINGLE_ISSUER, DEFER_TASKRUN, COOP_TASKRUN and
/// TASKRUN_FLAG and takes what the kernel grants. `unsupported` when it grants no ring at all, with a text
/// that says what to change.
result<std::unique_ptr<ring>> make_uring(const runtime_options& options);

/// One line that says why io_uring_setup failed with this errno and what to do about it.
std::string explain_setup_error(int error_number);

/// A ring that refuses every operation with -`error_number` and only sleeps and wakes: a worker whose ring
/// could not be created still runs actors and shuts down in order.
std::unique_ptr<ring> make_refusing_ring(int error_number);

} // namespace terrace::runtime
