// The objects of a chunk and their numbering.
#pragma once

#include "base/object_key.hpp"
#include "index/space_spec.hpp"

#include <array>
#include <cstdint>

namespace terrace {

/// Objects of a chunk are numbered pool by pool, rank by rank; those of a prefix chunk by chunk. A replicated
/// pool has one object, under rank 0, for any world size.
class chunk_layout {
 public:
  explicit chunk_layout(const space_spec& spec) : pools_(spec.pools.size()) {
    for (size_t p = 0; p < pools_; ++p)
      first_[p + 1] = first_[p] + (spec.pools[p].replicated ? 1 : spec.world_size);
  }

  size_t pools() const { return pools_; }
  uint32_t objects_per_chunk() const { return first_[pools_]; }
  uint32_t first_object(size_t pool) const { return first_[pool]; }
  uint32_t ranks(size_t pool) const { return first_[pool + 1] - first_[pool]; }
  uint32_t object_of(size_t pool, uint32_t rank) const {
    return first_[pool] + (ranks(pool) == 1 ? 0 : rank);
  }
  size_t pool_of(uint32_t object) const {
    size_t pool = 0;
    while (first_[pool + 1] <= object)
      ++pool;
    return pool;
  }

  /// The key of a chunk's n-th object.
  object_key key(space_id space, const digest& chunk, uint32_t object) const {
    size_t pool = pool_of(object);
    return {space, static_cast<uint16_t>(pool), static_cast<uint16_t>(object - first_[pool]), chunk};
  }

 private:
  std::array<uint32_t, space_spec::pools_max + 1> first_{};
  size_t pools_;
};

} // namespace terrace
