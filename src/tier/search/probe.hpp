// Asks a tier which objects it has.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "index/prefix_plan.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"

namespace terrace {

/// Asks which of these are published. With `hold`, they are held.
struct probe_request {
  batch_ptr objects;
  bool hold = false;
  bool note_access = false;
  object_range range{}; ///< the part of the batch to query
  bool counts = true;   ///< count hits and misses; otherwise the requester counts what it takes
};
struct probe_answer {
  error failure;
  tier_kind tier = tier_kind::none;
  object_bitmap present;   ///< parallel to the range's keys
  hold_ptr held;           ///< if requested and anything is present; parallel to the range's keys
  uint64_t held_bytes = 0; ///< if requested: bytes of the tier that anybody holds, these objects included
};

} // namespace terrace
