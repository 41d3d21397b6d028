// Whether anything has left an index since it was read.
#pragma once

#include <cstdint>

namespace terrace {

/// How many objects have left a tier's index since the start, and how many of them were held when they did, which only a
/// clear, damage or an operator brings about.
struct departure_counts {
  uint64_t all = 0;
  uint64_t held = 0;
  friend bool operator==(const departure_counts&, const departure_counts&) = default;
};

} // namespace terrace
