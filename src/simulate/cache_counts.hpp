// What a simulated daemon counts.
#pragma once

#include <cstdint>

namespace terrace::simulate {

/// In chunks. `disk` stands for all tiers below the first, `host memory` for the first.
struct cache_counts {
  uint64_t accesses = 0;    ///< asked for
  uint64_t hits = 0;        ///< of these, in the longest run from the root that was there, in whatever tier
  uint64_t disk_hits = 0;   ///< of the hits, those that were on disk alone
  uint64_t behind_hole = 0; ///< there, but behind one that was not: they miss
  uint64_t stored = 0;      ///< into host memory, by clients
  uint64_t promoted = 0;    ///< from disk into host memory
  uint64_t evicted = 0;     ///< from host memory
  uint64_t disk_written = 0;
  uint64_t disk_evicted = 0;
  uint64_t disk_refused = 0; ///< not admitted to disk, each time that they were offered
  uint64_t no_room = 0;      ///< no room could be made in host memory

  friend bool operator==(const cache_counts&, const cache_counts&) = default;
};

} // namespace terrace::simulate
