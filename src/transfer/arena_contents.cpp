#include "transfer/arena_contents.hpp"

#include <iterator>

namespace terrace {

void arena_contents::begin_write(const object_place& place) {
  auto at = extents_.lower_bound(place.offset);
  if (at != extents_.begin() && std::prev(at)->second.end > place.offset)
    --at;
  while (at != extents_.end() && at->first < place.offset + place.physical_bytes)
    at = extents_.erase(at);
}

void arena_contents::written(const object_place& place) {
  begin_write(place);
  extents_[place.offset] = {place.offset + place.physical_bytes, place.id};
}

bool arena_contents::has(object_id id, uint64_t offset) const {
  auto found = extents_.find(offset);
  return found != extents_.end() && found->second.id == id;
}

} // namespace terrace
