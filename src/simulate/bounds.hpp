// What no policy can pass: Belady's optimum for a capacity, and a cache without end.
//
// Both count a request's hits as a daemon does: the longest run from the root that is present when it comes.
#pragma once

#include "simulate/workload.hpp"

#include <cstdint>
#include <vector>

namespace terrace::simulate {

/// Chunks that hit when nothing ever leaves.
uint64_t infinite_cache_hits(const workload& of);

/// Belady's MIN (1966) for chunks of one size: of what a request leaves behind, whatever is needed again last goes, and
/// of chunks that are needed by the same next request the deeper ones. A chunk's parent is needed no later than the
/// chunk itself, so with these ties what stays is closed under prefixes, and the optimum of single chunks is that of
/// prefixes too. Chunks may be refused, and during a request memory is free: the bound is exact for a cache that holds
/// at most `capacity` chunks between requests, and no cache of that size does better.
///
/// Cost: O(accesses) once, then O(accesses + requests log requests) for each capacity. Only read once it is made.
class belady_bound {
 public:
  explicit belady_bound(const workload& of);

  /// Chunks that hit with room for `capacity` chunks.
  uint64_t hits(uint64_t capacity) const;

 private:
  const workload& of_;
  std::vector<uint32_t> next_use_; ///< of each access: the next request with the same chunk
};

} // namespace terrace::simulate
