#include "transfer/prefetch_plan.hpp"

#include "base/tier_properties.hpp"
#include "index/object_header.hpp"
#include "tier/objects/scope_objects.hpp"
#include "transfer/windows.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

namespace {

/// Calls `visit` (object, pool) for the objects of a chunk that a prefix of `length` chunks needs.
template <class Visit>
void for_needed(const space_spec& spec, const chunk_layout& layout, uint32_t length, uint32_t chunk,
                Visit&& visit) {
  for (size_t pool = 0; pool < layout.pools(); ++pool)
    if (needs(spec.pools[pool], length, chunk))
      for (uint32_t rank = 0; rank < layout.ranks(pool); ++rank)
        visit(layout.first_object(pool) + rank, pool);
}

} // namespace

prefetch_end end_for(errc why) {
  switch (why) {
    case errc::ok: return prefetch_end::complete;
    case errc::busy:
    case errc::no_space: return prefetch_end::no_room;
    case errc::deadline: return prefetch_end::deadline;
    case errc::cancelled:
    case errc::gone: return prefetch_end::cancelled;
    default: return prefetch_end::lost;
  }
}

uint32_t chunks_that_fit(const space_spec& spec, const prefix_plan& plan, uint64_t bytes, tier_kind to) {
  chunk_layout layout(spec);
  uint64_t sum = 0;
  for (uint32_t chunk = 0; chunk < plan.found_chunks; ++chunk) {
    if (plan.chunk_tiers[chunk] == to)
      continue;
    auto tiers =
        plan.object_tiers.begin() + static_cast<ptrdiff_t>(size_t{chunk} * layout.objects_per_chunk());
    for_needed(spec, layout, plan.found_chunks, chunk, [&](uint32_t object, size_t pool) {
      if (tiers[object] != to)
        sum += physical_bytes_for(spec.pools[pool].object_bytes);
    });
    if (sum > bytes)
      return chunk;
  }
  return plan.found_chunks;
}

prefetch_plan::prefetch_plan(prefetch_subject subject, const prefix_plan& found, const prefix_plan& expected,
                             uint64_t window_bytes)
    : of_(std::move(subject)), layout_(of_.space->spec), chunk_tiers_(expected.chunk_tiers),
      object_tiers_(expected.object_tiers), found_(found.found_chunks), found_by_tier_(chunks_by_tier(found)),
      requested_(static_cast<uint32_t>(of_.chunks->size())), expected_(expected.found_chunks),
      window_bytes_(std::max<uint64_t>(window_bytes / windows_max, 1)), left_(expected_) {
  assert(object_tiers_.size() >= size_t{expected_} * layout_.objects_per_chunk());
  for (size_t pool = 0; pool < layout_.pools(); ++pool) {
    const pool_spec& each = of_.space->spec.pools[pool];
    uint32_t first = each.rule == hit_rule::all_chunks ? 0 : expected_ - std::min(expected_, each.trailing);
    for (uint32_t chunk = first; chunk < expected_; ++chunk)
      left_[chunk] += layout_.ranks(pool);
  }
}

std::optional<prefetch_plan::window> prefetch_plan::next() {
  if (stopped() || next_ == expected_)
    return std::nullopt;
  const space_spec& spec = of_.space->spec;
  auto batch = std::make_shared<object_batch>();
  for (size_t pool = 0; pool < spec.pools.size(); ++pool)
    batch->trailing.set(pool, spec.pools[pool].rule == hit_rule::trailing_chunks);
  window made;
  uint64_t bytes = 0;
  uint32_t first = next_;
  for (; next_ < expected_; ++next_) {
    uint64_t more = 0;
    for_needed(spec, layout_, expected_, next_,
               [&](uint32_t, size_t pool) { more += physical_bytes_for(spec.pools[pool].object_bytes); });
    if (next_ != first &&
        (bytes + more > window_bytes_ || batch->size() + layout_.objects_per_chunk() > window_objects_max))
      break;
    bytes += more;
    auto tiers = object_tiers_.begin() + static_cast<ptrdiff_t>(size_t{next_} * layout_.objects_per_chunk());
    for_needed(spec, layout_, expected_, next_, [&](uint32_t object, size_t pool) {
      auto key = layout_.key(of_.space->id, (*of_.chunks)[next_], object);
      batch->keys.push_back(key);
      batch->parents.push_back(parent_of(spec, *of_.chunks, of_.before, next_, key));
      batch->payload_bytes.push_back(spec.pools[pool].object_bytes);
      made.chunks.push_back(next_);
      made.below = made.below || tiers[object] != memory_tier;
    });
  }
  made.objects = std::move(batch);
  return made;
}

void prefetch_plan::arrived(const window& part, const std::vector<bool>& there) {
  for (size_t i = 0; i < there.size(); ++i)
    if (there[i])
      --left_[part.chunks[i]];
}

arrival prefetch_plan::next_arrival() {
  if (!of_.arrivals || stopped())
    return {};
  uint32_t before = announced_;
  while (announced_ < left_.size() && left_[announced_] == 0)
    ++announced_;
  return {of_.arrivals, 0, 1, announced_ - before};
}

void prefetch_plan::lost(const window& part, size_t object, bool damaged) {
  const object_key& key = part.objects->keys[object];
  prefix_object where{part.chunks[object], key.pool, key.rank};
  if (!missing_ || where.chunk < missing_->chunk) {
    missing_ = where;
    damaged_ = damaged;
  }
  stop(prefetch_end::lost);
}

void prefetch_plan::stop(prefetch_end why) {
  if (!stopped())
    end_ = why;
}

uint32_t prefetch_plan::delivered() const {
  auto gap = std::find_if(left_.begin(), left_.end(), [](uint32_t left) { return left != 0; });
  return static_cast<uint32_t>(gap - left_.begin());
}

prefetch_result prefetch_plan::result() const {
  prefetch_result now;
  now.requested = requested_;
  now.all = {found_, expected_, delivered()};
  for (size_t tier = 0; tier < now.by_tier.size(); ++tier)
    now.by_tier[tier].found = static_cast<uint32_t>(found_by_tier_[tier]);
  for (uint32_t chunk = 0; chunk < expected_; ++chunk) {
    auto tier = static_cast<size_t>(chunk_tiers_[chunk]);
    if (tier >= now.by_tier.size())
      continue; // a chunk of which nothing is needed
    if (late_ && chunk >= now.all.delivered) {
      --now.by_tier[tier].found;
      continue;
    }
    ++now.by_tier[tier].expected;
    now.by_tier[tier].delivered += chunk < now.all.delivered ? 1 : 0;
  }
  if (late_) {
    now.late = expected_ - now.all.delivered;
    now.all.found -= now.late;
    now.all.expected -= now.late;
  }
  now.end = end_;
  if (now.all.delivered == now.all.expected)
    now.end = now.all.expected < now.all.found ? prefetch_end::no_room : prefetch_end::complete;
  if (now.end == prefetch_end::lost) {
    now.missing = missing_;
    now.damaged = damaged_;
  }
  return now;
}

} // namespace terrace
