// The objects that a request names. Requests travel as shared, immutable batches: one request to a tier whatever the number
// of objects.
#pragma once

#include "base/object_key.hpp"
#include "index/prefix_plan.hpp"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Objects of one request, chunk by chunk. The vectors are parallel; a probe looks at the keys alone.
struct object_batch {
  std::vector<object_key> keys;
  std::vector<entry_key> parents; ///< policy name of the same object of the previous chunk, or empty
  std::vector<uint64_t> payload_bytes;
  std::bitset<space_spec::pools_max>
      trailing; ///< the pools of which only the last states of a prefix are needed
  size_t size() const { return keys.size(); }
};
using batch_ptr = std::shared_ptr<const object_batch>;

/// A part of a batch. `count` may reach over its end: up to there.
struct object_range {
  size_t first = 0;
  size_t count = SIZE_MAX;
};

} // namespace terrace
