// Checks the limits that the system sets for the daemon (setrlimit(2), cgroups, seccomp) before it starts. A
// limit that is too low gives one line that names it, instead of a failure later.
#pragma once

#include "base/error.hpp"
#include "daemon/settings.hpp"

namespace terrace {

/// The minimum that the daemon needs at its start.
struct resource_needs {
  uint64_t descriptors = 0; ///< descriptors of the process
  uint64_t threads = 0;
  uint64_t host_file_bytes = 0; ///< the largest segment of host memory
  uint64_t disk_file_bytes = 0; ///< the largest file of the disk tier
  friend bool operator==(const resource_needs&, const resource_needs&) = default;
};

resource_needs needs_of(const settings& with, const environment& env);

/// Raises the soft limits on descriptors, threads and locked memory to the hard ones, and makes writing
/// beyond the limit on file sizes an error instead of a signal. Call it before threads start.
void raise_limits();

/// Errors: `unsupported`, with the limit, its value, and what to do.
result<void> check_limits(const resource_needs& needs);

} // namespace terrace
