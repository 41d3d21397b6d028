// Selects the objects of a prefix that a transfer is for: a range of its chunks, in some pools.
#pragma once

#include "base/error.hpp"
#include "index/prefix_plan.hpp"
#include "index/prefix_resolver.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace terrace {

/// A validated range of chunks: in requests, `count` 0 means "all from `first`". Error: `bad_request`.
struct chunk_range {
  size_t first = 0;
  size_t count = 0;
};
result<chunk_range> checked_range(size_t total, uint32_t first, uint32_t count);

/// The pools of a transfer by number, ascending.
using pool_list = std::vector<uint16_t>;
constexpr size_t transfer_objects_max = 1'048'576;

/// The requested pools, ascending, or all if none is named. Errors (`bad_request`): a pool that the space does not have,
/// or more objects than a transfer may have.
result<pool_list> checked_pools(const space_spec& spec, std::span<const uint8_t> named, size_t chunks);

/// The objects of a transfer are numbered by chunk, then pool, on one rank.
struct transfer_scope {
  chunk_range range;
  pool_list pools;

  size_t objects() const { return range.count * pools.size(); }
  /// Returns the object with this number as an object of the whole prefix.
  prefix_object object(size_t number, const space_spec& spec, uint16_t rank) const;
};

/// Returns the chunks of the range, as a prefix that continues the chunk before them.
chunk_prefix part_of(const chunk_prefix& whole, const chunk_range& range);

} // namespace terrace
