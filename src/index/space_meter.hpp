// An observer of the bytes that the objects of each space take in a tier.
#pragma once

#include "base/ids.hpp"

#include <cstdint>

namespace terrace {

/// A `resident_table` calls it with physical bytes when an object is inserted, reserved ones included, and
/// when it is erased.
class space_meter {
 public:
  virtual ~space_meter() = default;
  virtual void took(space_id space, uint64_t bytes) = 0;
  virtual void gave_back(space_id space, uint64_t bytes) = 0;
};

} // namespace terrace
