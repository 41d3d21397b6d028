#include "group/session_holds.hpp"

#include "base/tier_properties.hpp"
#include "index/chunk_layout.hpp"

#include <algorithm>

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
  if (!held || !what.space)
    return 0;
  const auto& places = held->places();
  auto absent =
      std::find_if(places.begin(), places.end(), [](const object_place& place) { return !place.present(); });
  return static_cast<uint32_t>(static_cast<size_t>(absent - places.begin()) /
                               chunk_layout(what.space->spec).objects_per_chunk());
}

void session_holds::replace(const session_id& session, const session_hold_facts& what) {
  end(session);
  auto at = line_.insert(line_.end(), {session, what});
  by_session_.emplace(session, at);
  by_lease_.emplace(what.lease, at);
}

void session_holds::touch(const session_id& session) {
  if (auto known = by_session_.find(session); known != by_session_.end())
    line_.splice(line_.end(), line_, known->second);
}

std::optional<lease_id> session_holds::end(const session_id& session) {
  auto known = by_session_.find(session);
  if (known == by_session_.end())
    return std::nullopt;
  place at = known->second;
  lease_id lease = at->what.lease;
  by_session_.erase(known);
  by_lease_.erase(lease);
  line_.erase(at);
  return lease;
}

const session_holds::entry* session_holds::find(const session_id& session) const {
  auto known = by_session_.find(session);
  return known == by_session_.end() ? nullptr : &*known->second;
}

const session_holds::entry* session_holds::find(const lease_id& lease) const {
  auto known = by_lease_.find(lease);
  return known == by_lease_.end() ? nullptr : &*known->second;
}

const session_holds::entry* session_holds::coldest(const session_id& except) const {
  auto at = line_.begin();
  if (at != line_.end() && at->session == except)
    ++at;
  return at == line_.end() ? nullptr : &*at;
}

} // namespace terrace
