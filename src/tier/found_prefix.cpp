#include "tier/found_prefix.hpp"

#include "index/chunk_layout.hpp"
#include "index/unusable_objects.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {

/// What could be held below leaves room for loads, which read what leases hold there.
uint64_t bytes_max(const lease_room& room, size_t tiers) {
  return tiers > 1 ? room.leases->bytes_max_beside_loads(room.host_bytes)
                   : room.leases->bytes_max(room.host_bytes);
}

} // namespace

found_prefix::found_prefix(prefix_subject of, std::vector<tier_share> tiers, size_t probed)
    : of_(std::move(of)), per_chunk_(chunk_layout(of_.in->spec).objects_per_chunk()), probed_(probed),
      shares_(std::move(tiers)) {
  chunk_layout layout(of_.in->spec);
  for (size_t pool = 0; pool < layout.pools(); ++pool)
    trailing_.insert(trailing_.end(), layout.ranks(pool),
                     of_.in->spec.pools[pool].rule == hit_rule::trailing_chunks);
  for (tier_share& share : shares_)
    answers_.push_back({share.tier, std::move(share.present)});
  cut_to(probed_ / per_chunk_ +
         1); // the first chunk that was not probed whole, like all behind it, is absent
}

/// Plans for at most so many chunks.
void found_prefix::cut_to(size_t chunks) {
  plan_request request = of_.plan;
  if (chunks < request.chunks) {
    request.chunks = static_cast<uint32_t>(chunks);
    for (tier_answer& each : answers_)
      each.present = each.present.first(chunks * per_chunk_);
  }
  plan_ = make_prefix_plan(of_.in->spec, request, answers_);
  plan_.requested_chunks = of_.plan.chunks;
}

std::optional<std::vector<discard_notice>> found_prefix::next_unusable() {
  const opened_space& space = *of_.in;
  size_t chunks =
      probed_ / per_chunk_; // the last slice may have ended inside a chunk, whose other objects are not known
  size_t first = std::max<size_t>(unusable_from_, plan_.found_chunks);
  if (!of_.hold || space.spec.world_size == 1 || first >= chunks)
    return std::nullopt;
  size_t end = std::min(chunks, first + step_objects / per_chunk_ + 1);
  unusable_from_ = end;
  object_bitmap anywhere((end - first) * per_chunk_);
  for (const tier_answer& each : answers_)
    for (size_t i = 0; i < anywhere.size(); ++i)
      if (size_t object = first * per_chunk_ + i; object < each.present.size() && each.present.test(object))
        anywhere.set(i);
  std::vector<discard_notice> gone(shares_.size(), {{}, discard_reason::unusable});
  for (size_t i : unusable_objects(space.spec, *space.ranks, anywhere, 0)) {
    size_t object = first * per_chunk_ + i;
    for (size_t tier = 0; tier < shares_.size(); ++tier)
      if (const hold_ptr& held = shares_[tier].held;
          held && object < held->places().size() && held->places()[object].present())
        gone[tier].ids.push_back(held->places()[object].id);
    assert(gone[0].ids.size() <= step_objects + per_chunk_);
  }
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

// ---- what it holds below ----

bool found_prefix::needed(size_t object) const {
  const pool_spec& pool = of_.in->spec.pools[pools_[object % per_chunk_]];
  return needs(pool, plan_.found_chunks, static_cast<uint32_t>(object / per_chunk_));
}

/// Adds up what is held below. True: all of it.
bool found_prefix::sum_some_below() {
  size_t left = summed_objects;
  below_.resize(shares_.size());
  for (; summed_share_ < shares_.size(); ++summed_share_, summed_ = 0) {
    const tier_share& share = shares_[summed_share_];
    if (share.tier == tier_kind::host || !share.held)
      continue;
    const auto& places = share.held->places();
    for (; summed_ < places.size(); ++summed_, --left) {
      if (left == 0)
        return false;
      if (places[summed_].present())
        (needed(summed_) ? below_[summed_share_].needed : below_[summed_share_].unneeded) +=
            places[summed_].physical_bytes;
    }
  }
  return true;
}

/// Releases there, from the end, what is held in host memory too. Returns how many of the bytes remain.
uint64_t found_prefix::release_copies(tier_share& share, uint64_t bytes) {
  if (!holds_in_host())
    return bytes;
  const auto& here = shares_.front().held->places();
  const auto& there = share.held->places();
  std::vector<bool> keeps(there.size(), true);
  for (size_t i = std::min(here.size(), there.size()); i-- > 0 && bytes != 0;) {
    if (!here[i].present() || !there[i].present() || !needed(i))
      continue;
    keeps[i] = false;
    bytes -= std::min(bytes, there[i].physical_bytes);
  }
  share.held->keep_only(keeps);
  return bytes;
}

/// A lease that would hold too much of a tier below gives up what host memory holds as well, and then ends earlier.
void found_prefix::cut_below(const lease_room& room) {
  for (size_t k = 0; k < shares_.size(); ++k) {
    tier_share& share = shares_[k];
    uint64_t capacity = room.below_bytes[static_cast<size_t>(share.tier)];
    if (share.tier == tier_kind::host || !share.held || capacity == 0)
      continue;
    uint64_t held = share.held_bytes - std::min(share.held_bytes, below_[k].unneeded);
    uint64_t excess = account_->too_much_below(share.tier, below_[k].needed, held, capacity);
    if (excess == 0)
      continue;
    shortened_below_ = true;
    excess = release_copies(share, excess);
    const auto& places = share.held->places();
    size_t objects = std::min<size_t>(places.size(), plan_.found_chunks * per_chunk_);
    while (objects != 0 && excess != 0) {
      --objects;
      const pool_spec& pool = of_.in->spec.pools[pools_[objects % per_chunk_]];
      if (places[objects].present() && pool.rule != hit_rule::trailing_chunks)
        excess -= std::min(excess, places[objects].physical_bytes);
    }
    if (objects / per_chunk_ < plan_.found_chunks && objects < places.size()) {
      cut_to(objects / per_chunk_);
      keep_found();
      shortened_ = true;
    }
  }
}

void found_prefix::charge_below() {
  if (plan_.found_chunks == 0)
    return;
  for (size_t k = 0; k < below_.size(); ++k) {
    tier_share& share = shares_[k];
    if (share.tier == tier_kind::host || !share.held)
      continue;
    uint64_t bytes = below_[k].needed;
    if (shortened_ || shortened_below_) {
      bytes = 0;
      for (const object_place& place : share.held->places())
        bytes += place.present() ? place.physical_bytes : 0;
    }
    share.held = account_->charge_below(share.tier, std::move(share.held), bytes);
  }
}

// ---- what it holds in host memory ----

bool found_prefix::holds_in_host() const {
  return !shares_.empty() && shares_.front().tier == tier_kind::host && shares_.front().held;
}

/// Whether all that was found is held in host memory, and all of it is needed.
bool found_prefix::all_in_host() const { return !has_trailing_pools(of_.in->spec) && absent_ == 0; }

leased_prefix found_prefix::in_host() {
  leased_prefix prefix{of_.in->spec, shares_.front().held->places(), {}, std::move(leased_), 0};
  for (auto share = shares_.begin() + 1; share != shares_.end(); ++share)
    if (share->held)
      prefix.below.emplace_back(share->held->places());
  return prefix;
}

/// Shortens the prefix to what fits, and keeps in host memory only what a lease holds there.
void found_prefix::cut_to_fit(leased_prefix prefix) {
  size_t may_have = chunks_that_fit(prefix);
  if (may_have < plan_.found_chunks) {
    cut_to(may_have);
    keep_found();
    shortened_ = true;
  }
  release_unneeded();
  prefix.host = shares_.front().held->places();
  shares_.front().held->keep_only(kept_in_host(prefix));
}

/// Counts what the lease adds. True: everything is counted.
bool found_prefix::count_some(const lease_room& room) {
  auto rest = std::span(shares_.front().held->places()).subspan(leased_.size());
  auto some = rest.first(std::min(rest.size(), step_objects));
  auto leased = room.leases->leased(some);
  for (size_t i = 0; i < some.size(); ++i) {
    absent_ += some[i].present() ? 0 : 1;
    if (some[i].present() && !leased[i])
      added_bytes_ += some[i].physical_bytes;
  }
  leased_.insert(leased_.end(), leased.begin(), leased.end());
  return some.size() == rest.size();
}

/// The claim is kept until what is chosen within it is charged.
void found_prefix::claim(const lease_room& room) {
  uint64_t most = bytes_max(room, shares_.size());
  claimed_.emplace(account_->claim_for(added_bytes_, most));
  if (claimed_->complete() && all_in_host())
    return;
  auto prefix = in_host();
  auto beside = account_->claim_for(bytes_to_load(prefix), most);
  prefix.room = claimed_->bytes() + beside.bytes();
  cut_to_fit(std::move(prefix));
}

bool found_prefix::lease_some(const lease_room& room) {
  hold_ptr none; // nothing was searched
  hold_ptr& host = shares_.empty() ? none : shares_.front().held;
  if (stage_ == stage::begins) {
    keep_found();
    stage_ = stage::summing;
    account_ = room.account ? room.account : room.leases->open();
    chunk_layout layout(of_.in->spec);
    for (size_t pool = 0; pool < layout.pools(); ++pool)
      pools_.insert(pools_.end(), layout.ranks(pool), static_cast<uint16_t>(pool));
  }
  if (stage_ == stage::summing) {
    if (!sum_some_below())
      return true;
    cut_below(room);
    stage_ = stage::counting;
    if (!holds_in_host() || plan_.found_chunks == 0) {
      release_unneeded();
      charge_below();
      stage_ = stage::leased;
    }
  }
  if (stage_ == stage::counting) {
    bool several = host->places().size() > step_objects / 2;
    if (!count_some(room))
      return true;
    claim(room);
    charge_.emplace(account_, std::move(host));
    stage_ = stage::charging;
    if (several)
      return true;
  }
  if (stage_ == stage::charging) {
    if (charge_->add_some(step_objects, &*claimed_)) // what is charged is not claimed any longer
      return true;
    host = charge_->result();
    charge_.reset();
    claimed_.reset();
    charge_below();
    stage_ = stage::leased;
  }
  return false;
}

std::optional<std::vector<access_notice>> found_prefix::next_accesses() {
  if (!of_.note_access || plan_.found_chunks == 0)
    return std::nullopt;
  size_t objects = plan_.found_chunks * per_chunk_;
  bool states_too = has_trailing_pools(of_.in->spec);
  if (accessed_ >= objects * (states_too ? 2 : 1))
    return std::nullopt;
  // What every prefix needs from the end on, then states from the beginning on (tier/access_order.hpp).
  bool states = accessed_ >= objects;
  size_t count = std::min(step_objects, objects - accessed_ % objects);
  size_t first = states ? accessed_ - objects : objects - accessed_ - count;
  accessed_ += count;
  std::vector<access_notice> used(shares_.size());
  for (size_t tier = 0; tier < shares_.size(); ++tier) {
    if (!shares_[tier].held)
      continue;
    const auto& places = shares_[tier].held->places();
    for (size_t i = first; i < std::min(first + count, places.size()); ++i)
      if (places[i].present() && (!states_too || trailing_[i % per_chunk_] == states))
        used[tier].ids.push_back(places[i].id);
    assert(used[tier].ids.size() <= step_objects);
  }
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
