// Makes reserved objects visible.
#pragma once

#include "base/error.hpp"
#include "index/space_registry.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/objects/object_place.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// The reserved objects are complete. With `hold`, they are held.
struct publish_request {
  std::vector<object_place> places;
  bool hold = false;
  uint64_t inference = 0; ///< the inference that they were written for; 0: none or unknown
  space_ptr
      in; ///< the space of all of them; a durable tier needs it, and a tier that writes objects down later
};
struct publish_answer {
  error failure;
  hold_ptr held;
};

} // namespace terrace
