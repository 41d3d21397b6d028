// The capacities of a simulated daemon's tiers and the sizes of its transfers: the daemon's rules, in chunks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace terrace::simulate {

/// The objects of a replay; each chunk is one object.
struct object_sizes {
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0;         ///< bytes of the arena per object, with header block and padding
  uint64_t region_bytes = 32ULL << 20; ///< region of the client, which limits a store or load
  uint64_t segment_bytes = 1ULL << 30; ///< no object of the host arena crosses a segment
};

struct cache_shape {
  uint64_t capacity_chunks = 0;
  uint64_t object_bytes = 0;  ///< physical bytes of an object
  uint64_t window_chunks = 1; ///< chunks for which a transfer allocates space at a time
  uint64_t batch_chunks = 1;  ///< chunks per request of the client
};

/// Returns the number of whole objects that fit in the segments. The rest of each segment is unusable for
/// objects of this size.
inline uint64_t chunks_in(uint64_t arena_bytes, const object_sizes& objects) {
  uint64_t segments = arena_bytes / objects.segment_bytes;
  return segments * (objects.segment_bytes / objects.physical_bytes) +
         arena_bytes % objects.segment_bytes / objects.physical_bytes;
}

/// Returns the smallest arena in which `chunks` fit.
inline uint64_t arena_for(uint64_t chunks, const object_sizes& objects) {
  uint64_t in_segment = objects.segment_bytes / objects.physical_bytes;
  return chunks / in_segment * objects.segment_bytes + chunks % in_segment * objects.physical_bytes;
}

/// Applies the daemon's rule: a window is at most 64 MiB and at most an eighth of the arena, but at least a
/// chunk.
inline cache_shape shape_of(uint64_t arena_bytes, const object_sizes& objects) {
  uint64_t window = std::min<uint64_t>(64ULL << 20, arena_bytes / 8);
  return {.capacity_chunks = chunks_in(arena_bytes, objects),
          .object_bytes = objects.physical_bytes,
          .window_chunks = std::max<uint64_t>(1, window / objects.physical_bytes),
          .batch_chunks = std::max<uint64_t>(1, objects.region_bytes / objects.payload_bytes)};
}

} // namespace terrace::simulate
