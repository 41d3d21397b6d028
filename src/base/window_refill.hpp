// Decides what a store writes again after its window had to give up objects of its own.
#pragma once

#include <cstddef>
#include <vector>

namespace terrace {

/// A window of a store gets room for all its absent objects at once. If only objects of its own request can be evicted,
/// the room comes from the end of its chain, possibly from objects of the window that were present. Absent objects at
/// the end stay absent: storing them would only evict the objects before them. But a gap before present objects would
/// make those useless.
///
/// `present`: the window's objects in chain order. Returns how many of the absent ones, from the first on, to store in
/// another round; even if their room comes from the end of the window, they leave no gap. 0: no round is needed.
inline size_t objects_to_refill(const std::vector<bool>& present) {
  size_t count = 0;
  for (size_t first = 0, end = present.size(); first < end; ++first) {
    if (present[first])
      continue;
    while (end > first && !present[end - 1])
      --end;
    if (end <= first)
      break;
    --end; // its place is taken by the absent object
    ++count;
  }
  return count;
}

/// Others may evict at the same time, and a store does not compete with them forever.
constexpr int refills_max = 16;

} // namespace terrace
