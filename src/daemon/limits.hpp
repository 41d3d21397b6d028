// Checks the limits that the system sets for the daemon (setrlimit(2), cgroups, seccomp) before it starts. A
// limit that is too low gives one line that names it, instead of a failure later.
#pragma once

#include "base/error.hpp"
#include "daemon/settings.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

// How much memory the daemon may use: the memory of the machine, within the limits of its memory cgroups.

struct memory_limit {
  uint64_t bytes = 0;
  /// The owner of the limit, such as "the machine (MemTotal)" or "the cgroup /system.slice (memory.max)"
  std::string whose;
  bool of_machine = false;
};

/// Returns the limits that exist, read from the files below `root`; tests supply their own. Reads versions 1
/// and 2 of cgroups.
std::vector<memory_limit> memory_limits(const std::string& root = "");

/// Returns `bad_request`, with both figures, if host memory is larger than one of the limits. Huge pages are
/// not charged to a cgroup's memory.
result<void> fits_in_memory(const host_options& host, const std::vector<memory_limit>& limits);

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
