// Messages from the daemon to its supervisor after a reload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

/// Sets the policy of a tier in all groups, after a reload. Empty: unchanged.
struct policies_notice {
  std::string host;
  std::string disk;
};

/// The new host memory of each group, in the order of `groups`. Failures are reported to `warn`.
struct resize_groups {
  std::vector<uint64_t> host_bytes;
};

} // namespace terrace
