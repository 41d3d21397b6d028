// Do objects that are being copied elsewhere still count?
#pragma once

#include "base/error.hpp"
#include "index/object_id.hpp"

#include <vector>

namespace terrace {

/// Which of these are published still? Asked of the tier that bytes come from, by a transfer whose destination is reserved.
/// A clear goes through the tiers from the fastest down and through the fastest once more, and takes what is published
/// and what is reserved: so nothing that it took comes back by a transfer that was under way.
struct confirm_request {
  std::vector<object_id> ids;
};
struct confirm_answer {
  error failure;
  std::vector<bool> present; ///< parallel
};

} // namespace terrace
