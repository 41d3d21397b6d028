// The rule by which objects are written to a tier below.
#pragma once

#include "base/eviction_types.hpp"

#include <cstdint>

namespace terrace {

/// Which objects are written to disk.
struct disk_admission {
  admission_rule rule = admission_rule::always;
  uint64_t bytes_per_day = 0; ///< 0: no limit
};

} // namespace terrace
