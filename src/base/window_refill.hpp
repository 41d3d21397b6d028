// What a store brings once more after its window had to give up objects of its own.
#pragma once

#include <cstddef>
#include <vector>

namespace terrace {

/// A window of a store gets room for all its absent objects at once. If only its own request's objects can be evicted,
/// the room comes from the end of its chain, possibly from objects of the window that were present. What is absent at
/// the end stays absent: bringing it would only evict what precedes it. But absent objects before present ones would
/// make those useless.
///
/// `present`: the window's objects in chain order. Returns how many of the absent ones, from the first on, are to be
/// stored in another round; if room for them comes from the end of the window, no gap is left. 0: there is none now.
inline size_t objects_to_refill(const std::vector<bool>& present) {
  size_t count = 0;
  for (size_t first = 0, end = present.size(); first < end; ++first) {
    if (present[first])
      continue;
    while (end > first && !present[end - 1])
      --end;
    if (end <= first)
      break;
    --end; // this one's place is taken
    ++count;
  }
  return count;
}

/// Others may evict at the same time: a store does not compete with them forever.
constexpr int refills_max = 16;

} // namespace terrace
