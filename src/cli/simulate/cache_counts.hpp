// Counts of a simulated daemon.
#pragma once

#include <cstdint>

namespace terrace::simulate {

/// In chunks. `disk` means all tiers below the first, `host memory` the first.
struct cache_counts {
  uint64_t accesses = 0;    ///< requested
  uint64_t hits = 0;        ///< of these, in the longest run from the root that was present in any tier
  uint64_t disk_hits = 0;   ///< of the hits, those that were only on disk
  uint64_t behind_hole = 0; ///< present, but after a missing chunk: they count as misses
  uint64_t stored = 0;      ///< into host memory, by clients
  uint64_t promoted = 0;    ///< from disk into host memory
  uint64_t evicted = 0;     ///< from host memory
  uint64_t disk_written = 0;
  uint64_t disk_evicted = 0;
  uint64_t disk_refused = 0; ///< not admitted to disk, counted at each offer
  uint64_t no_room = 0;      ///< not stored because no room could be made in host memory

  friend bool operator==(const cache_counts&, const cache_counts&) = default;
};

} // namespace terrace::simulate
