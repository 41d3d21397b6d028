// The order of a load whose layers are awaited: pool by pool, and within each pool chunk by chunk.
//
// Pure.
#pragma once

#include <cstddef>

namespace terrace {

struct load_subject;

/// Objects are numbered by chunk, then pool; a load in this order has them by pool, then chunk. It may begin behind some pools.
struct layer_order {
  size_t chunks = 0; ///< of each pool; 0: the objects are in the order of their numbers
  size_t pools = 1;  ///< of a chunk, by which objects are numbered
  size_t first_pool = 0;

  explicit operator bool() const { return chunks != 0; }
  /// Of the object at this place of the load.
  size_t number_of(size_t place) const {
    return chunks == 0 ? place : place % chunks * pools + first_pool + place / chunks;
  }
  size_t pool_of(size_t place) const { return first_pool + place / chunks; }
  size_t end_of_pool(size_t place) const { return (place / chunks + 1) * chunks; }
};

/// The pools from `first_pool` on of the first `chunks` chunks of a load, as a load of chunks of one object each. What the lease
/// holds of them stays held by `of`. Its generations are kept only if these are all of its chunks.
load_subject in_layer_order(const load_subject& of, size_t first_pool, size_t chunks);

} // namespace terrace
