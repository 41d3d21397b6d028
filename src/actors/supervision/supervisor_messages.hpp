// What the daemon asks of its supervisor after a reload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::actors {

/// Another policy for a tier in all groups, after a reload. Empty: as it was.
struct policies_notice {
  std::string host;
  std::string disk;
};

/// Host memory that each group shall have from now on, in the order of `groups`. What could not be done is told to `warn`.
struct resize_groups {
  std::vector<uint64_t> host_bytes;
};

} // namespace terrace::actors
