// Which objects should leave a tier?
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/object_key.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// Asked of the policy.
struct victim_request {
  tier_kind tier = tier_kind::none;
  uint64_t bytes = 0;
  uint64_t inference =
      0; ///< room is made for it: what it uses itself is not named; 0: for none that is known
};
struct victim_answer {
  error failure;
  std::vector<entry_key> victims;
  std::vector<entry_key> above; ///< parallel: the ancestor that may leave only when the victim does, or empty
  uint64_t bytes = 0;           ///< of all victims; less than was asked for: no more may leave
};

} // namespace terrace
