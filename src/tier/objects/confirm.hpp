// Confirms that objects being copied elsewhere are still valid.
#pragma once

#include "base/error.hpp"
#include "index/object_id.hpp"

#include <vector>

namespace terrace {

/// Asks the source tier, after the destination is reserved, which of these objects are still published. A
/// clear visits the tiers from the fastest down and the fastest once more, and removes published and reserved
/// objects, so that nothing that was cleared comes back through a transfer in progress.
struct confirm_request {
  std::vector<object_id> ids;
};
struct confirm_answer {
  error failure;
  std::vector<bool> present; ///< parallel to the objects
};

} // namespace terrace
