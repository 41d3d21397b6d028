#include "tier/found_prefix.hpp"

#include "index/chunk_layout.hpp"
#include "index/unusable_objects.hpp"

#include <algorithm>

namespace terrace {

namespace {

object_bitmap first_of(const object_bitmap& all, size_t objects) {
  object_bitmap part(objects);
  for (size_t i = 0; i < objects; ++i)
    if (all.test(i))
      part.set(i);
  return part;
}

/// What could be held below leaves room for loads, which read what leases hold there.
uint64_t bytes_max(const lease_room& room, size_t tiers) {
  return tiers > 1 ? room.leases->bytes_max_beside_loads(room.host_bytes)
                   : room.leases->bytes_max(room.host_bytes);
}

} // namespace

found_prefix::found_prefix(prefix_subject of, std::vector<tier_share> tiers, size_t probed)
    : of_(std::move(of)), per_chunk_(chunk_layout(of_.in->spec).objects_per_chunk()), probed_(probed),
      shares_(std::move(tiers)) {
  for (tier_share& share : shares_)
    answers_.push_back({share.tier, std::move(share.present)});
  cut_to((probed_ + per_chunk_ - 1) / per_chunk_); // nothing is present behind the last slice
}

/// Plans for at most so many chunks.
void found_prefix::cut_to(size_t chunks) {
  plan_request request = of_.plan;
  if (chunks < request.chunks) {
    request.chunks = static_cast<uint32_t>(chunks);
    for (tier_answer& each : answers_)
      each.present = first_of(each.present, chunks * per_chunk_);
  }
  plan_ = make_prefix_plan(of_.in->spec, request, answers_);
  plan_.requested_chunks = of_.plan.chunks;
}

std::vector<discard_notice> found_prefix::unusable() const {
  std::vector<discard_notice> gone(shares_.size(), {{}, discard_reason::unusable});
  const opened_space& space = *of_.in;
  if (!of_.hold || space.spec.world_size == 1)
    return gone;
  // The last slice may have ended inside a chunk, whose other objects are not known.
  object_bitmap anywhere(probed_ - probed_ % per_chunk_);
  for (const tier_answer& each : answers_)
    anywhere.merge(0, first_of(each.present, anywhere.size()));
  for (size_t object : unusable_objects(space.spec, *space.ranks, anywhere, plan_.found_chunks))
    for (size_t tier = 0; tier < shares_.size(); ++tier)
      if (const hold_ptr& held = shares_[tier].held;
          held && object < held->places().size() && held->places()[object].present())
        gone[tier].ids.push_back(held->places()[object].id);
  return gone;
}

void found_prefix::keep_found() {
  for (tier_share& share : shares_)
    if (share.held)
      share.held->keep_first(plan_.found_chunks * per_chunk_);
}

/// A state that no window of the found prefix needs is not accessed, and a lease does not hold it.
void found_prefix::release_unneeded() {
  const space_spec& spec = of_.in->spec;
  if (!has_trailing_pools(spec))
    return;
  chunk_layout layout(spec);
  std::vector<bool> keeps;
  keeps.reserve(plan_.found_chunks * per_chunk_);
  for (uint32_t chunk = 0; chunk < plan_.found_chunks; ++chunk)
    for (size_t pool = 0; pool < layout.pools(); ++pool)
      keeps.insert(keeps.end(), layout.ranks(pool), needs(spec.pools[pool], plan_.found_chunks, chunk));
  for (tier_share& share : shares_)
    if (share.held)
      share.held->keep_only(keeps);
}

bool found_prefix::holds_in_host() const {
  return !shares_.empty() && shares_.front().tier == tier_kind::host && shares_.front().held;
}

/// Whether all that was found is held in host memory, and all of it is needed.
bool found_prefix::all_in_host() const {
  const auto& places = shares_.front().held->places();
  return !has_trailing_pools(of_.in->spec) &&
         std::all_of(places.begin(), places.end(), [](const object_place& place) { return place.present(); });
}

leased_prefix found_prefix::in_host(const lease_room& room, uint64_t bytes) const {
  leased_prefix prefix{of_.in->spec, shares_.front().held->places(), {}, {}, bytes};
  for (auto share = shares_.begin() + 1; share != shares_.end(); ++share)
    if (share->held)
      prefix.below.emplace_back(share->held->places());
  prefix.leased = room.leases->leased(prefix.host);
  return prefix;
}

void found_prefix::lease(const lease_room& room) {
  keep_found();
  if (!holds_in_host() || plan_.found_chunks == 0) {
    release_unneeded();
    return;
  }
  account_ptr account = room.account ? room.account : room.leases->open();
  hold_ptr& host = shares_.front().held;
  auto claimed = account->claim_for(host->places(), bytes_max(room, shares_.size()));
  if (!claimed.complete() || !all_in_host()) {
    size_t may_have = chunks_that_fit(in_host(room, claimed.bytes()));
    if (may_have < plan_.found_chunks) {
      cut_to(may_have);
      keep_found();
      shortened_ = true;
    }
    release_unneeded();
    host->keep_only(kept_in_host(in_host(room, claimed.bytes())));
  }
  host = account->charge(std::move(host));
}

std::vector<access_notice> found_prefix::accesses() const {
  std::vector<access_notice> used(shares_.size());
  if (!of_.note_access || plan_.found_chunks == 0)
    return used;
  for (size_t tier = 0; tier < shares_.size(); ++tier)
    if (shares_[tier].held)
      for (const object_place& place : shares_[tier].held->places())
        if (place.present())
          used[tier].ids.push_back(place.id);
  return used;
}

tier_holds found_prefix::take_holds() {
  tier_holds held;
  if (plan_.found_chunks != 0)
    for (tier_share& share : shares_)
      if (share.held)
        held.push_back({share.tier, std::move(share.held)});
  return held;
}

} // namespace terrace
