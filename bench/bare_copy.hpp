// The limit of copies: memcpy between two mappings, with as many threads as the other side uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::bench {

struct copy_plan {
  uint64_t total_bytes = 0;
  uint64_t piece_bytes = 0; ///< divides both sides and the total
  size_t threads = 1;
  uint64_t call_bytes = 0;  ///< most bytes per call of memcpy; 0: one piece
  bool large_pages = false; ///< ask for large pages where `to` has no pages yet, before they are written to
};

/// Copies `total_bytes` in pieces and reuses the smaller side again and again; the threads take the next
/// piece in turns, as the daemon's copiers do. Returns seconds.
double seconds_to_copy(const copy_plan& what, std::span<uint8_t> to, std::span<const uint8_t> from);

/// Number of copying threads of a default daemon: `copier.threads` in docs/configuration.md.
size_t default_copiers();

/// Requests for one object each that a client keeps in flight when copies are compared with this many
/// threads: two for each copier, so that it copies one while the answer of the other is in transit.
inline size_t copies_in_flight() { return 2 * default_copiers(); }

} // namespace terrace::bench
