// Remembers what the last lookup of a prefix found, so that the next lookup, of a longer prefix, need not
// search for it again.
#pragma once

#include "base/tier_properties.hpp"
#include "index/prefix_plan.hpp"

#include <algorithm>
#include <cassert>
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

inline uint32_t leading_host_chunks(const prefix_plan& plan) {
  auto elsewhere = std::find_if(plan.chunk_tiers.begin(), plan.chunk_tiers.end(),
                                [](tier_kind tier) { return tier != memory_tier; });
  return static_cast<uint32_t>(elsewhere - plan.chunk_tiers.begin());
}

inline prefix_plan behind_known(prefix_plan rest, uint32_t known, uint32_t chunk_tokens) {
  assert(rest.requested_chunks > 0 && rest.object_tiers.empty());
  uint64_t tokens = uint64_t{known} * chunk_tokens;
  assert(rest.first_token >= tokens);
  rest.requested_chunks += known;
  rest.found_chunks += known;
  rest.usable_chunks = rest.found_chunks; // at least one of their tokens is usable
  rest.first_token -= tokens;
  rest.found_tokens += tokens;
  rest.usable_tokens += tokens;
  if (rest.missing)
    rest.missing->chunk += known;
  rest.chunk_tiers.insert(rest.chunk_tiers.begin(), known, memory_tier);
  return rest;
}

} // namespace terrace
