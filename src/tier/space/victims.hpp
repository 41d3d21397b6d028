// Asks which objects a tier should evict.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/object_key.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// The tier sends it to the policy.
struct victim_request {
  tier_kind tier = tier_kind::none;
  uint64_t bytes = 0;
  uint64_t inference =
      0; ///< room is made for this inference, and its own objects are not proposed; 0: unknown
};
struct victim_answer {
  error failure;
  std::vector<entry_key> victims;
  std::vector<entry_key> above; ///< parallel: the ancestor that is evictable only after the victim, or empty
  uint64_t bytes = 0;           ///< sum of all victims; less than requested: no more are evictable
};

} // namespace terrace
