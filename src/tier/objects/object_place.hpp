// The location of an object in its tier's arena.
#pragma once

#include "index/resident.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

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
