// Eviction policies of a trust group as `connection::policies` gives them. Counters count since the daemon's start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::client {

struct tier_policy {
  std::string tier; ///< "host", "disk"
  std::string policy;
  uint64_t objects = 0; ///< resident ones
};

/// What a tier of this capacity under this policy would have hit, had the clients stored all that it missed.
struct shadow_policy {
  std::string policy;
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t objects = 0;
  uint64_t bookkeeping_bytes = 0;
  uint64_t requests = 0;
  uint64_t asked = 0; ///< objects of all requests
  uint64_t hits = 0;
  uint64_t asked_bytes = 0;
  uint64_t hit_bytes = 0;
  uint64_t evictions = 0;
};

struct policies_status {
  std::string group;
  std::vector<tier_policy> tiers;
  uint64_t tracked = 0;           ///< objects that the policies know
  uint64_t ghosts = 0;            ///< of these, resident nowhere
  uint64_t bookkeeping_bytes = 0; ///< for all of them
  std::vector<shadow_policy> shadows;
  uint64_t skipped_requests = 0; ///< that the shadows were too busy to hear
  std::vector<std::string> known;
};

} // namespace terrace::client
