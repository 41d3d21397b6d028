// Pools that are declared by the shapes of their tensors instead of a number of bytes.
#pragma once

#include "index/space_spec.hpp"

namespace terrace {

/// The pools for a declared pool: the pool itself with `object_bytes` computed from its tensors for chunks of
/// `chunk_tokens`, or, with `layer_groups` above 1, one pool per group, "NAME.0", "NAME.1", ..., so that a
/// chunk has an object per group of layers. A pool without tensors is returned unchanged. Errors
/// (`bad_request`): those of `object_shape::make` and `divide_layers`; layer groups without tensors;
/// `object_bytes` that contradict the tensors.
result<std::vector<pool_spec>> shaped_pools(const pool_spec& stated, uint32_t layer_groups,
                                            uint32_t chunk_tokens);

/// The shape for a pool of a valid spec. Error: the pool has no tensors.
result<object_shape> shape_of(const pool_spec& pool, uint32_t chunk_tokens);

} // namespace terrace
