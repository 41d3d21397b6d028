// Which object's bytes are where in an arena that is lost with the process that has it, and begins empty again.
//
//   contents.begin_write(place);          // whatever was there is not any longer
//   contents.written(place);              // the bytes are complete
//   if (contents.has(place.id, offset)) ...
//
// A hold outlives the arena whose object it held, so its place may lie in one that has something else there. Pure; used by
// one thread at a time.
#pragma once

#include "tier/objects/object_batch.hpp"

#include <cstdint>
#include <iterator>
#include <map>

namespace terrace {

class arena_contents {
 public:
  void begin_write(const object_place& place);
  void written(const object_place& place);
  /// `offset`: of the extent.
  bool has(object_id id, uint64_t offset) const;
  /// The arena is lost.
  void clear() { extents_.clear(); }
  size_t objects() const { return extents_.size(); } ///< those whose extents were freed since included

 private:
  struct extent_of {
    uint64_t end = 0;
    object_id id{};
  };
  std::map<uint64_t, extent_of> extents_; ///< by offset; they do not overlap
};

inline void arena_contents::begin_write(const object_place& place) {
  auto at = extents_.lower_bound(place.offset);
  if (at != extents_.begin() && std::prev(at)->second.end > place.offset)
    --at;
  while (at != extents_.end() && at->first < place.offset + place.physical_bytes)
    at = extents_.erase(at);
}

inline void arena_contents::written(const object_place& place) {
  begin_write(place);
  extents_[place.offset] = {place.offset + place.physical_bytes, place.id};
}

inline bool arena_contents::has(object_id id, uint64_t offset) const {
  auto found = extents_.find(offset);
  return found != extents_.end() && found->second.id == id;
}

} // namespace terrace
