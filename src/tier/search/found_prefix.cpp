#include "tier/search/found_prefix.hpp"

#include "base/tier_properties.hpp"
#include "index/chunk_layout.hpp"
#include "index/prefix_plan.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {

/// The objects that could be held below leave room for loads, which read the objects that leases hold there.
uint64_t bytes_max(const lease_room& room, size_t tiers) {
  return tiers > 1 ? room.leases->bytes_max_beside_loads(room.host_bytes)
                   : room.leases->bytes_max(room.host_bytes);
}

std::vector<tier_answer> answers_of(std::vector<tier_share>& shares) {
  std::vector<tier_answer> answers;
  answers.reserve(shares.size());
  for (tier_share& share : shares)
    answers.push_back({share.tier, std::move(share.present)});
  return answers;
}

/// True if reading a chunk of the plan takes time.
bool takes_time(const prefix_plan& plan, const recompute_terms& terms) {
  return std::any_of(plan.chunk_tiers.begin(), plan.chunk_tiers.end(), [&terms](tier_kind tier) {
    auto i = static_cast<size_t>(tier);
    return i < terms.tiers.size() && terms.tiers[i];
  });
}

} // namespace

found_prefix::found_prefix(prefix_subject subject, std::vector<tier_share> tiers, size_t probed)
    : of_(std::move(subject)), per_chunk_(chunk_layout(of_.space->spec).objects_per_chunk()), probed_(probed),
      shares_(std::move(tiers)),
      planner_(of_.space->spec, of_.plan, answers_of(shares_),
               // The first chunk that was not probed as a whole is absent, like all chunks behind it.
               static_cast<uint32_t>(probed_ / per_chunk_ + 1)) {}

std::optional<std::vector<discard_notice>> found_prefix::next_unusable() {
  const opened_space& space = *of_.space;
  size_t chunks =
      probed_ / per_chunk_; // the last slice may have ended inside a chunk, whose other objects are not known
  size_t first = std::max<size_t>(unusable_from_, plan().found_chunks);
  if (!of_.hold || space.spec.world_size == 1 || first >= chunks)
    return std::nullopt;
  size_t end = std::min(chunks, first + step_objects / per_chunk_ + 1);
  unusable_from_ = end;
  object_bitmap anywhere((end - first) * per_chunk_);
  for (const tier_answer& each : planner_.answers())
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

// ---- chunks that are left to the client ----

bool found_prefix::leave_some(const recompute_terms& terms) {
  if (!leaving_)
    leaving_.emplace(leave(terms));
  return leaving_->next();
}

steps found_prefix::leave(recompute_terms terms) {
  if (!takes_time(plan(), terms))
    co_return;
  uint32_t found = plan().found_chunks;
  recompute_choice choice(planner_, of_.space->spec, terms);
  while (choice.step())
    co_yield {};
  patience_s_ = choice.patience_s();
  if (choice.chunks() == found)
    co_return;
  steps rest = cut_to(choice.chunks());
  while (rest.next())
    co_yield {};
  recompute_chunks_ = found - plan().found_chunks;
}

// ---- a lease on it, in steps ----

bool found_prefix::lease_some(const lease_room& room) {
  if (!leasing_) {
    if (std::none_of(shares_.begin(), shares_.end(),
                     [](const tier_share& share) { return bool(share.held); }))
      return false;
    leasing_.emplace(lease(room));
  }
  return leasing_->next();
}

steps found_prefix::lease(lease_room room) {
  steps part = keep_found();
  while (part.next())
    co_yield {};
  account_ = room.account ? room.account : room.leases->open();
  chunk_layout layout(of_.space->spec);
  for (size_t pool = 0; pool < layout.pools(); ++pool)
    pools_.insert(pools_.end(), layout.ranks(pool), static_cast<uint16_t>(pool));
  part = sum_below();
  while (part.next())
    co_yield {};
  part = cut_below(room);
  while (part.next())
    co_yield {};
  if (!holds_in_host() || plan().found_chunks == 0)
    part = release_unneeded();
  else
    part = lease_in_host(room);
  while (part.next())
    co_yield {};
  part = charge_below();
  while (part.next())
    co_yield {};
}

/// Plans for at most `chunks` chunks.
steps found_prefix::cut_to(size_t chunks) {
  if (chunks < plan().found_chunks) {
    planner_.cut(static_cast<uint32_t>(chunks));
    while (planner_.step())
      co_yield {};
  }
  steps rest = keep_found();
  while (rest.next())
    co_yield {};
}

steps found_prefix::keep_found() {
  size_t objects = plan().found_chunks * per_chunk_;
  for (tier_share& share : shares_) {
    if (!share.held)
      continue;
    while (share.held->keep_first(objects, released_objects))
      co_yield {};
  }
}

/// A state that no window of the found prefix needs is not accessed, and a lease does not hold it.
steps found_prefix::release_unneeded() {
  if (!has_trailing_pools(of_.space->spec))
    co_return;
  size_t objects = plan().found_chunks * per_chunk_;
  std::vector<bool> keeps(objects);
  for (size_t first = 0; first < objects; first += released_objects) {
    for (size_t i = first; i < std::min(objects, first + released_objects); ++i)
      keeps[i] = needed(i);
    for (tier_share& share : shares_)
      if (share.held)
        share.held->keep_only(keeps, first, released_objects);
    if (first + released_objects < objects)
      co_yield {};
  }
}

// ---- objects that the lease holds below ----

bool found_prefix::needed(size_t object) const {
  const pool_spec& pool = of_.space->spec.pools[pools_[object % per_chunk_]];
  return needs(pool, plan().found_chunks, static_cast<uint32_t>(object / per_chunk_));
}

/// Adds up the bytes that are held below.
steps found_prefix::sum_below() {
  step_pace pace(seen_objects);
  below_.resize(shares_.size());
  for (size_t k = 0; k < shares_.size(); ++k) {
    const tier_share& share = shares_[k];
    if (share.tier == memory_tier || !share.held)
      continue;
    const auto& places = share.held->places();
    for (size_t i = 0; i < places.size(); ++i) {
      if (pace.due())
        co_yield {};
      if (places[i].present())
        (needed(i) ? below_[k].needed : below_[k].unneeded) += places[i].physical_bytes;
    }
  }
}

/// Releases objects of the share that are held in host memory, too, from the end, until `bytes` bytes are
/// released. Afterwards `bytes` has what remains.
steps found_prefix::release_copies(tier_share& share, uint64_t& bytes) {
  if (!holds_in_host())
    co_return;
  const auto& here = shares_.front().held->places();
  const auto& there = share.held->places();
  std::vector<bool> keeps(there.size(), true);
  for (size_t end = std::min(here.size(), there.size()); end != 0 && bytes != 0;) {
    size_t first = end - std::min(end, released_objects);
    for (size_t i = end; i-- > first && bytes != 0;) {
      if (!here[i].present() || !there[i].present() || !needed(i))
        continue;
      keeps[i] = false;
      bytes -= std::min(bytes, there[i].physical_bytes);
    }
    share.held->keep_only(keeps, first, end - first);
    end = first;
    if (end != 0)
      co_yield {};
  }
}

/// A lease that would hold too much of a tier below first gives up objects there that host memory holds as
/// well; if that is not enough, it ends earlier.
steps found_prefix::cut_below(const lease_room& room) {
  for (size_t k = 0; k < shares_.size(); ++k) {
    tier_share& share = shares_[k];
    uint64_t capacity = room.below_bytes[static_cast<size_t>(share.tier)];
    if (share.tier == memory_tier || !share.held || capacity == 0)
      continue;
    uint64_t held = share.held_bytes - std::min(share.held_bytes, below_[k].unneeded);
    uint64_t excess = account_->too_much_below(share.tier, below_[k].needed, held, capacity);
    if (excess == 0)
      continue;
    shortened_below_ = true;
    steps part = release_copies(share, excess);
    while (part.next())
      co_yield {};
    const auto& places = share.held->places();
    size_t objects = std::min<size_t>(places.size(), plan().found_chunks * per_chunk_);
    step_pace pace(seen_objects);
    while (objects != 0 && excess != 0) {
      --objects;
      const pool_spec& pool = of_.space->spec.pools[pools_[objects % per_chunk_]];
      if (places[objects].present() && pool.rule != hit_rule::trailing_chunks)
        excess -= std::min(excess, places[objects].physical_bytes);
      if (pace.due())
        co_yield {};
    }
    if (objects / per_chunk_ < plan().found_chunks && objects < places.size()) {
      part = cut_to(objects / per_chunk_);
      while (part.next())
        co_yield {};
      shortened_ = true;
    }
  }
}

steps found_prefix::charge_below() {
  if (plan().found_chunks == 0)
    co_return;
  step_pace pace(seen_objects);
  for (size_t k = 0; k < below_.size(); ++k) {
    tier_share& share = shares_[k];
    if (share.tier == memory_tier || !share.held)
      continue;
    uint64_t bytes = below_[k].needed;
    if (shortened_ || shortened_below_) {
      bytes = 0;
      for (const object_place& place : share.held->places()) {
        bytes += place.present() ? place.physical_bytes : 0;
        if (pace.due())
          co_yield {};
      }
    }
    share.held = account_->charge_below(share.tier, std::move(share.held), bytes);
    held_bytes_ += bytes;
  }
}

// ---- objects that the lease holds in host memory ----

bool found_prefix::holds_in_host() const {
  return !shares_.empty() && shares_.front().tier == memory_tier && shares_.front().held;
}

/// True if host memory holds all objects that were found, and all of them are needed.
bool found_prefix::all_in_host() const { return !has_trailing_pools(of_.space->spec) && absent_ == 0; }

leased_prefix found_prefix::in_host() {
  leased_prefix prefix{of_.space->spec, shares_.front().held->places(), {}, std::move(leased_), 0};
  for (auto share = shares_.begin() + 1; share != shares_.end(); ++share)
    if (share->held)
      prefix.below.emplace_back(share->held->places());
  return prefix;
}

/// Charges the objects; charged bytes are no longer claimed.
steps found_prefix::lease_in_host(const lease_room& room) {
  hold_ptr& host = shares_.front().held;
  bool several = host->places().size() > step_objects / 2;
  steps part = count(room);
  while (part.next())
    co_yield {};
  part = claim(room);
  while (part.next())
    co_yield {};
  if (several)
    co_yield {};
  lease_account::gradual_charge charge(account_, std::move(host));
  while (charge.add_some(step_objects, &*claimed_))
    co_yield {};
  host = charge.result();
  held_bytes_ += charge.bytes();
  claimed_.reset();
}

/// Counts the bytes that the lease adds.
steps found_prefix::count(const lease_room& room) {
  auto places = std::span(shares_.front().held->places());
  while (leased_.size() < places.size()) {
    if (!leased_.empty())
      co_yield {};
    auto rest = places.subspan(leased_.size());
    auto some = rest.first(std::min(rest.size(), step_objects));
    auto leased = room.leases->leased(some);
    for (size_t i = 0; i < some.size(); ++i) {
      absent_ += some[i].present() ? 0 : 1;
      if (some[i].present() && !leased[i])
        added_bytes_ += some[i].physical_bytes;
    }
    leased_.insert(leased_.end(), leased.begin(), leased.end());
  }
}

/// Claims room; the claim is kept until the objects chosen within it are charged.
steps found_prefix::claim(const lease_room& room) {
  uint64_t most = bytes_max(room, shares_.size());
  claimed_.emplace(account_->claim_for(added_bytes_, most));
  if (claimed_->complete() && all_in_host())
    co_return;
  auto prefix = in_host();
  uint64_t to_load = 0;
  steps part = find_bytes_to_load(prefix, to_load);
  while (part.next())
    co_yield {};
  auto beside = account_->claim_for(to_load, most);
  prefix.room = claimed_->bytes() + beside.bytes();
  part = cut_to_fit(std::move(prefix));
  while (part.next())
    co_yield {};
}

/// Shortens the prefix to the chunks that fit, and keeps in host memory only objects that a lease holds there.
steps found_prefix::cut_to_fit(leased_prefix prefix) {
  size_t chunks = 0;
  steps part = find_chunks_that_fit(prefix, chunks);
  while (part.next())
    co_yield {};
  if (chunks < plan().found_chunks) {
    part = cut_to(chunks);
    while (part.next())
      co_yield {};
    shortened_ = true;
  }
  part = release_unneeded();
  while (part.next())
    co_yield {};
  prefix.host = shares_.front().held->places();
  std::vector<bool> keeps;
  part = find_kept_in_host(prefix, keeps);
  while (part.next())
    co_yield {};
  for (size_t first = 0; first < keeps.size(); first += released_objects) {
    if (first != 0)
      co_yield {};
    shares_.front().held->keep_only(keeps, first, released_objects);
  }
}

std::optional<std::vector<access_notice>> found_prefix::next_accesses() {
  if (!of_.note_access || plan().found_chunks == 0)
    return std::nullopt;
  size_t objects = plan().found_chunks * per_chunk_;
  bool states_too = has_trailing_pools(of_.space->spec);
  if (states_too && trailing_.empty())
    trailing_ = trailing_objects(of_.space->spec);
  if (accessed_ >= objects * (states_too ? 2 : 1))
    return std::nullopt;
  // Objects that every prefix needs come first, from the end on, then states from the beginning on
  // (tier/objects/object_batch.hpp).
  bool states = accessed_ >= objects;
  size_t count = std::min(step_objects, objects - accessed_ % objects);
  size_t first = states ? accessed_ - objects : objects - accessed_ - count;
  accessed_ += count;
  std::vector<access_notice> used(shares_.size());
  for (size_t tier = 0; tier < shares_.size(); ++tier) {
    if (!shares_[tier].held)
      continue;
    const auto& places = shares_[tier].held->places();
    auto& ids = used[tier].ids;
    for (size_t i = first; i < std::min(first + count, places.size()); ++i) {
      bool accessed = places[i].present() && (!states_too || trailing_[i % per_chunk_] == states);
      if (accessed || (!states_too && !ids.empty())) // then the gaps count, too: see `chains`
        ids.push_back(places[i].id);
    }
    while (!ids.empty() && ids.back() == object_id{})
      ids.pop_back();
    used[tier].chains = states_too ? 0 : per_chunk_;
    assert(ids.size() <= step_objects);
  }
  return used;
}

tier_holds found_prefix::take_holds() {
  tier_holds held;
  if (plan().found_chunks != 0)
    for (tier_share& share : shares_)
      if (share.held)
        held.push_back({share.tier, std::move(share.held)});
  return held;
}

} // namespace terrace
