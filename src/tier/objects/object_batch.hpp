// The objects of a request. Requests are passed as shared, immutable batches: one message to a tier for any
// number of objects.
#pragma once

#include "base/object_key.hpp"
#include "index/prefix_plan.hpp"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// The objects of one request, by chunk. The vectors are parallel; a probe uses only the keys.
struct object_batch {
  std::vector<object_key> keys;
  std::vector<entry_key> parents; ///< policy name of the same object of the previous chunk, or empty
  std::vector<uint64_t> payload_bytes;
  std::bitset<space_spec::pools_max> trailing; ///< pools in which only the last states of a prefix are needed
  size_t size() const { return keys.size(); }
};
using batch_ptr = std::shared_ptr<const object_batch>;

/// A part of a batch. `count` may exceed its end.
struct object_range {
  size_t first = 0;
  size_t count = SIZE_MAX;
};

} // namespace terrace
