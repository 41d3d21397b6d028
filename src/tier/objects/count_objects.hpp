// Asks how many objects of a space a tier has.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"

#include <cstdint>

namespace terrace {

struct count_objects_request {
  space_id of{};
};
struct count_objects_answer {
  error failure;        ///< always `ok`
  uint64_t objects = 0; ///< in any state
};

} // namespace terrace
