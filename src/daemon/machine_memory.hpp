// How much memory the daemon may use: that of the machine, and the limits of its memory cgroups.
#pragma once

#include "base/error.hpp"
#include "daemon/settings.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

struct memory_limit {
  uint64_t bytes = 0;
  std::string whose; ///< such as "the machine (MemTotal)" or "the cgroup /system.slice (memory.max)"
  bool of_machine = false;
};

/// Limits that exist, read from the files below `root`; tests supply their own. Versions 1 and 2 of cgroups.
std::vector<memory_limit> memory_limits(const std::string& root = "");

/// `bad_request` if host memory is larger than one of them, with both figures. Huge pages are not charged to a
/// cgroup's memory.
result<void> fits_in_memory(const host_options& host, const std::vector<memory_limit>& limits);

} // namespace terrace
