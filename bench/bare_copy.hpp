// The limit of copies: memcpy between two mappings, by as many threads as the other side copies with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::bench {

struct copy_plan {
  uint64_t total_bytes = 0;
  uint64_t piece_bytes = 0; ///< divides both sides and the total
  size_t threads = 1;
  uint64_t call_bytes = 0;  ///< of one call of memcpy, at most; 0: a piece
  bool large_pages = false; ///< of the pieces of `to` of which nothing exists, before they are written to
};

/// Copies `total_bytes` in pieces, the smaller side used round and round; the threads take the next piece in turns, as the
/// daemon's copiers do. Seconds.
double seconds_to_copy(const copy_plan& what, std::span<uint8_t> to, std::span<const uint8_t> from);

/// Threads of a default daemon that copy: `copier.threads` in docs/configuration.md.
size_t default_copiers();

/// Requests about one object each that a client keeps in flight where copies are compared with so many threads: two for
/// each copier, one that is copied while the answer of the other is on its way.
inline size_t copies_in_flight() { return 2 * default_copiers(); }

} // namespace terrace::bench
