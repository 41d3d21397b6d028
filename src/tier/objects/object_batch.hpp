// The objects of a request, and their places. Requests are passed as shared, immutable batches: one message to a tier for any
// number of objects.
#pragma once

#include "base/object_key.hpp"
#include "index/prefix_plan.hpp"
#include "index/resident.hpp"

#include <algorithm>
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

// The order in which the accesses to a request's objects are recorded.

/// Objects are ordered by chunk. Accesses are recorded so that the order of access is the order of eviction:
/// last chunk first, because a prefix is useful without its end; but states of trailing pools after that,
/// from the first on, because the last states are the ones needed. `present(i)` and `trailing(i)` describe
/// object i; `visit(i)` is called once per present object, and must not change their results for other
/// objects.
template <class Present, class Trailing, class Visit>
void in_access_order(size_t objects, Present&& present, Trailing&& trailing, Visit&& visit) {
  bool states = false;
  for (size_t i = objects; i-- > 0;) {
    if (!present(i))
      continue;
    if (trailing(i))
      states = true;
    else
      visit(i);
  }
  for (size_t i = 0; states && i < objects; ++i)
    if (present(i) && trailing(i))
      visit(i);
}

struct object_place {
  object_id id{};      ///< 0: absent
  uint64_t offset = 0; ///< start of the extent: the header block, then the payload (index/object_header.hpp)
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0;
  uint64_t generation = 0; ///< generation of its write, in a durable tier (index/index_record.hpp)
  bool present() const { return id != object_id{}; }
};

inline size_t count_present(const std::vector<object_place>& places) {
  return static_cast<size_t>(
      std::count_if(places.begin(), places.end(), [](const object_place& one) { return one.present(); }));
}

} // namespace terrace
