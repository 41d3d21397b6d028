// Upper bounds for all policies: Belady's optimum for a capacity, and an infinite cache.
//
// Both count a request's hits as a daemon does: the longest run from the root that is present when it
// arrives.
#pragma once

#include "cli/simulate/workload.hpp"

#include <cstdint>
#include <vector>

namespace terrace::simulate {

/// Hits, in chunks, of a cache that evicts nothing.
uint64_t infinite_cache_hits(const workload& trace);

/// Belady's MIN (1966) for chunks of one size: after a request, the chunks whose next use is latest are
/// evicted; of chunks with the same next request, the deeper ones. A chunk's parent is needed no later than
/// the chunk itself, so with this tie-break the cached chunks are closed under prefixes, and the optimum for
/// single chunks is also the optimum for prefixes. Chunks may be refused, and memory is unlimited during a
/// request: the bound is exact for a cache that holds at most `capacity` chunks between requests, and no
/// cache of that size does better.
///
/// Cost: O(accesses) once, then O(accesses + requests log requests) per capacity. Immutable after
/// construction.
class belady_bound {
 public:
  explicit belady_bound(const workload& trace);

  /// Hits, in chunks, with room for `capacity` chunks.
  uint64_t hits(uint64_t capacity) const;

 private:
  const workload& of_;
  std::vector<uint32_t> next_use_; ///< for each access, the next request with the same chunk
};

} // namespace terrace::simulate
