// Removes the objects of a space, or all objects.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "index/pending_clear.hpp"

#include <cstdint>
#include <optional>

namespace terrace {

/// Removes all objects of the space, or all objects, including held ones: their holders may continue reading.
struct clear_request {
  std::optional<space_id> space;
  std::optional<space_fingerprint>
      fingerprint{}; ///< fingerprint of that space; a volume may know it by an earlier number
};
struct clear_answer {
  error failure; ///< the objects are removed, but may come back after a restart
  uint64_t objects = 0;
  uint64_t bytes = 0; ///< physical
  std::optional<pending_clear>
      missed{}; ///< in a tier that outlives its daemon: paths of its volume that do not know of the clear
};

} // namespace terrace
