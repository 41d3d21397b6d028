// Asks which spaces have no object in a tier, before the trust group forgets idle ones.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"

#include <vector>

namespace terrace {

struct empty_spaces_request {
  static constexpr size_t spaces_max = 4'096; ///< per request
  std::vector<space_id> of;
};
struct empty_spaces_answer {
  error failure;
  std::vector<space_id> empty; ///< spaces of which the tier has no object
};

/// These spaces have no object in any tier, and their numbers are never used again.
struct forget_spaces_notice {
  std::vector<space_id> gone;
};

} // namespace terrace
