// Room in an arena: what its allocator asks of its tier when free space does not serve the requests that wait.
#pragma once

#include "base/error.hpp"
#include "memory/allocator.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

/// From the allocator to its tier: evict at least this much.
struct room_request {
  uint64_t bytes = 0;     ///< what is missing; 0 when enough is free, but not in runs of the right size
  uint64_t needed = 0;    ///< by the request that waits: the tier asks which victims serve it; 0: none waits
  uint64_t inference = 0; ///< that the request serves; 0: none that is known
  friend bool operator==(const room_request&, const room_request&) = default;
};
/// The tier's answer: what its victims gave back. `exhausted`: nothing more may leave now (`for_one`: not enough for the
/// request that waits); the tier sends another `room_made` when that changes.
struct room_made {
  std::vector<extent> extents;
  bool exhausted = false;
  std::string holders;
  bool for_one = false;
};
/// From the tier, between the two: these would leave, in this order. Which of them does the waiting request need?
struct choose_request {
  std::vector<extent> candidates;
};
struct choose_answer {
  error failure;
  bool waits = true;          ///< false: nobody needs room any more
  std::vector<size_t> chosen; ///< indices, ascending; empty: not even all are enough
};

} // namespace terrace
