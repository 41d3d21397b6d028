// Removes objects from a tier.
#pragma once

#include "base/error.hpp"
#include "tier/objects/object_batch.hpp"

#include <vector>

namespace terrace {

/// Removes all published objects with these keys: they are never found once the request is answered.
struct remove_request {
  batch_ptr objects;
  /// Objects being written under the keys are not published; their space stays with the writer until it ends.
  /// False: they go on.
  bool written = true;
};
struct remove_answer {
  error failure;
  std::vector<bool> removed; ///< parallel to the keys: it was published
  bool pending = false;      ///< some objects are being written, and go on: send `await_request`
};

} // namespace terrace
