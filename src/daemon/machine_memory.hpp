// How much memory the daemon may use: the memory of the machine, within the limits of its memory cgroups.
#pragma once

#include "base/error.hpp"
#include "daemon/settings.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

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

} // namespace terrace
