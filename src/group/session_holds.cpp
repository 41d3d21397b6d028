#include "group/session_holds.hpp"

#include "base/tier_properties.hpp"
#include "index/chunk_layout.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

uint64_t host_bytes_of(const lease& what) {
  uint64_t bytes = 0;
  if (auto held = held_in(what.held, memory_tier))
    for (const object_place& place : held->places())
      bytes += place.present() ? place.physical_bytes : 0;
  return bytes;
}

uint32_t host_chunks_of(const lease& what) {
  auto held = held_in(what.held, memory_tier);
  if (!held || !what.in)
    return 0;
  const auto& places = held->places();
  auto absent =
      std::find_if(places.begin(), places.end(), [](const object_place& place) { return !place.present(); });
  return static_cast<uint32_t>(static_cast<size_t>(absent - places.begin()) /
                               chunk_layout(what.in->spec).objects_per_chunk());
}

lease_ptr session_holds::replace(const session_id& session, lease_ptr what, uint64_t host_bytes,
                                 uint32_t host_chunks) {
  assert(what);
  lease_ptr before = end(session);
  auto at = line_.insert(line_.end(), {session, std::move(what), host_bytes, host_chunks});
  by_session_.emplace(session, at);
  by_lease_.emplace(at->what->id, at);
  return before;
}

void session_holds::touch(const session_id& session) {
  if (auto known = by_session_.find(session); known != by_session_.end())
    line_.splice(line_.end(), line_, known->second);
}

lease_ptr session_holds::take(place at) {
  by_session_.erase(at->session);
  by_lease_.erase(at->what->id);
  lease_ptr held = std::move(at->what);
  line_.erase(at);
  return held;
}

lease_ptr session_holds::end(const session_id& session) {
  auto known = by_session_.find(session);
  return known == by_session_.end() ? nullptr : take(known->second);
}

lease_ptr session_holds::end(const lease_id& lease) {
  auto known = by_lease_.find(lease);
  return known == by_lease_.end() ? nullptr : take(known->second);
}

const session_holds::entry* session_holds::find(const session_id& session) const {
  auto known = by_session_.find(session);
  return known == by_session_.end() ? nullptr : &*known->second;
}

const session_holds::entry* session_holds::find(const lease_id& lease) const {
  auto known = by_lease_.find(lease);
  return known == by_lease_.end() ? nullptr : &*known->second;
}

std::optional<session_holds::entry> session_holds::end_coldest(const session_id& except) {
  auto at = line_.begin();
  if (at != line_.end() && at->session == except)
    ++at;
  if (at == line_.end())
    return std::nullopt;
  entry coldest{at->session, nullptr, at->host_bytes};
  coldest.what = take(at);
  return coldest;
}

} // namespace terrace
