// Who is told what the objects of each space take in a tier.
#pragma once

#include "base/ids.hpp"

#include <cstdint>

namespace terrace {

/// Called by a `resident_table` with physical bytes: when an object is inserted, reserved ones too, and when it is erased.
class space_meter {
 public:
  virtual ~space_meter() = default;
  virtual void took(space_id space, uint64_t bytes) = 0;
  virtual void gave_back(space_id space, uint64_t bytes) = 0;
};

} // namespace terrace
