// Remembers what the last lookup of a prefix found, so that the next lookup, of a longer prefix, need not
// search for it again.
#pragma once

#include "index/prefix_plan.hpp"

#include <algorithm>
#include <cstdint>

namespace terrace {

// Tells whether anything has left an index since it was read.

/// Counts the objects that have left a tier's index since the start, and those among them that were held when
/// they left, which only a clear, damage or an operator can cause.
struct departure_counts {
  uint64_t all = 0;
  uint64_t held = 0;
  friend bool operator==(const departure_counts&, const departure_counts&) = default;
};

struct known_prefix {
  uint32_t chunks = 0;       ///< number of leading chunks, all objects of which were in host memory
  departure_counts before{}; ///< the departures from host memory, read before the search

  known_prefix first(size_t count) const {
    return {static_cast<uint32_t>(std::min<size_t>(chunks, count)), before};
  }
};

/// Returns how many chunks are still in host memory: all, if nothing has left it; otherwise the first `held`,
/// which somebody has held there without interruption, if nothing that is held has left it.
inline uint32_t still_known(const known_prefix& known, const departure_counts& now, uint32_t held) {
  if (now.all == known.before.all)
    return known.chunks;
  return now.held == known.before.held ? std::min(known.chunks, held) : 0;
}

/// Returns how many leading chunks of the plan are in host memory.
uint32_t leading_host_chunks(const prefix_plan& plan);

/// Returns the plan of all chunks, in a space without `trailing_chunks` pools. `rest` is the plan of the chunks behind
/// the first `known`, which are in host memory. Precondition: there is at least one chunk behind them.
prefix_plan behind_known(prefix_plan rest, uint32_t known, uint32_t chunk_tokens);

} // namespace terrace
