// Removes objects from a tier.
#pragma once

#include "base/error.hpp"
#include "tier/objects/object_batch.hpp"

#include <vector>

namespace terrace {

/// Whatever is published under these keys is never found again, once it is answered.
struct remove_request {
  batch_ptr objects;
  /// What is being written there is not published: its writer's space stays its own until it ends. False: it goes on.
  bool written = true;
};
struct remove_answer {
  error failure;
  std::vector<bool> removed; ///< parallel to the keys: it was published
  bool pending = false;      ///< some are being written, and go on: send `await_request`
};

} // namespace terrace
