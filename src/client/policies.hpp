// Eviction policies of a trust group, as returned by `connection::policies`. Counters start with the daemon.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::client {

struct tier_policy {
  std::string tier; ///< "host", "disk"
  std::string policy;
  uint64_t objects = 0; ///< resident objects
};

/// The hits that a tier with this capacity and policy would have had if the clients had stored everything it
/// missed.
struct shadow_policy {
  std::string policy;
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t objects = 0;
  uint64_t bookkeeping_bytes = 0;
  uint64_t requests = 0;
  uint64_t asked = 0; ///< objects in all requests
  uint64_t hits = 0;
  uint64_t asked_bytes = 0;
  uint64_t hit_bytes = 0;
  uint64_t evictions = 0;
};

struct policies_status {
  std::string group;
  std::vector<tier_policy> tiers;
  uint64_t tracked = 0;           ///< objects tracked by the policies
  uint64_t ghosts = 0;            ///< tracked objects that are resident in no tier
  uint64_t bookkeeping_bytes = 0; ///< memory that all policies use
  std::vector<shadow_policy> shadows;
  uint64_t skipped_requests = 0; ///< requests that were skipped because the shadows were busy
  std::vector<std::string> known;
};

} // namespace terrace::client
