// Tells whether anything has left an index since it was read.
#pragma once

#include <cstdint>

namespace terrace {

/// Counts the objects that have left a tier's index since the start, and those among them that were held when
/// they left, which only a clear, damage or an operator can cause.
struct departure_counts {
  uint64_t all = 0;
  uint64_t held = 0;
  friend bool operator==(const departure_counts&, const departure_counts&) = default;
};

} // namespace terrace
