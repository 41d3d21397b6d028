// Counts of a simulated daemon.
#pragma once

#include <cstdint>

namespace terrace::simulate {

/// Counts are in chunks. `disk` means all tiers below the first, `host memory` the first.
struct cache_counts {
  uint64_t accesses = 0;    ///< chunks requested
  uint64_t hits = 0;        ///< accesses in the longest run from the root that was present in any tier
  uint64_t disk_hits = 0;   ///< hits that were only on disk
  uint64_t behind_hole = 0; ///< chunks that were present after a missing one; they count as misses
  uint64_t stored = 0;      ///< chunks that clients stored in host memory
  uint64_t promoted = 0;    ///< chunks copied from disk into host memory
  uint64_t evicted = 0;     ///< chunks evicted from host memory
  uint64_t disk_written = 0;
  uint64_t disk_evicted = 0;
  uint64_t disk_refused = 0; ///< chunks that the disk did not admit, counted at each offer
  uint64_t no_room = 0;      ///< chunks not stored because no room could be made in host memory

  friend bool operator==(const cache_counts&, const cache_counts&) = default;
};

} // namespace terrace::simulate
