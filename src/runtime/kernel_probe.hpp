// What this kernel lets us do, asked once at start.
#pragma once

#include "base/error.hpp"
#include "runtime/io_request.hpp"

#include <cstdint>
#include <string>

namespace terrace::runtime {

struct kernel_report {
  std::string release;          ///< as uname says it
  ring_features features;       ///< `registered_buffers`: one page could be registered
  uint64_t memlock_bytes = 0;   ///< RLIMIT_MEMLOCK; UINT64_MAX: unlimited
  std::string describe() const; ///< one line for the log
};

/// Creates and drops a ring. `unsupported` with one clear line when io_uring is denied or missing.
result<kernel_report> probe_kernel();

} // namespace terrace::runtime
