// Pools that are stated by the shapes of their tensors in place of a number of bytes.
#pragma once

#include "index/space_spec.hpp"

namespace terrace {

/// The pools that a stated one stands for: itself with `object_bytes` computed from its tensors for chunks of
/// `chunk_tokens`, or, with `layer_groups` above 1, a pool a group, "NAME.0", "NAME.1", ..., so that a chunk has an object
/// of its own for each group of layers. A pool without tensors is given back as it came. Errors (`bad_request`): those of
/// `object_shape::make` and `divide_layers`; layer groups without tensors; `object_bytes` that contradict the tensors.
result<std::vector<pool_spec>> shaped_pools(const pool_spec& stated, uint32_t layer_groups,
                                            uint32_t chunk_tokens);

/// Of a pool of a valid spec; error: it has no tensors.
result<object_shape> shape_of(const pool_spec& pool, uint32_t chunk_tokens);

} // namespace terrace
