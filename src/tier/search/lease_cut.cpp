#include "tier/search/lease_cut.hpp"

#include "index/chunk_layout.hpp"
#include "index/object_header.hpp"

#include <algorithm>

namespace terrace {

namespace {

bool is_trailing(const space_spec& spec, size_t pool) {
  return spec.pools[pool].rule == hit_rule::trailing_chunks;
}

const object_place* below_of(const leased_prefix& prefix, size_t i) {
  for (auto places : prefix.below)
    if (i < places.size() && places[i].present())
      return &places[i];
  return nullptr;
}

/// Returns the bytes that holding the object in host memory adds.
uint64_t cost_of(const leased_prefix& prefix, size_t i) {
  return prefix.leased[i] ? 0 : prefix.host[i].physical_bytes;
}

/// Adds the most bytes that the trailing pools of any one length must hold in host memory.
steps add_trailing_bytes(const leased_prefix& prefix, uint64_t& bytes) {
  chunk_layout layout(prefix.spec);
  size_t per_chunk = layout.objects_per_chunk();
  step_pace pace(lease_cut_objects);
  for (size_t pool = 0; pool < layout.pools(); ++pool) {
    if (!is_trailing(prefix.spec, pool))
      continue;
    uint64_t must = 0;
    for (size_t i = layout.first_object(pool); i < prefix.host.size(); i += per_chunk) {
      for (size_t rank = i; rank < i + layout.ranks(pool); ++rank)
        if (prefix.host[rank].present() && below_of(prefix, rank) == nullptr)
          must += cost_of(prefix, rank);
      if (pace.due(layout.ranks(pool)))
        co_yield {};
    }
    uint64_t window = prefix.spec.pools[pool].trailing * layout.ranks(pool) *
                      physical_bytes_for(prefix.spec.pools[pool].object_bytes);
    bytes += std::min(must, window);
  }
}

} // namespace

std::vector<bool> trailing_objects(const space_spec& spec) {
  chunk_layout layout(spec);
  std::vector<bool> trailing;
  for (size_t pool = 0; pool < layout.pools(); ++pool)
    trailing.insert(trailing.end(), layout.ranks(pool), is_trailing(spec, pool));
  return trailing;
}

steps find_bytes_to_load(const leased_prefix& prefix, uint64_t& bytes) {
  auto trailing = trailing_objects(prefix.spec);
  step_pace pace(lease_cut_objects);
  bytes = 0;
  for (size_t i = 0; i < prefix.host.size(); ++i) {
    if (!prefix.host[i].present() && !trailing[i % trailing.size()])
      if (const object_place* below = below_of(prefix, i))
        bytes += below->physical_bytes;
    if (pace.due())
      co_yield {};
  }
}

steps find_chunks_that_fit(const leased_prefix& prefix, size_t& chunks) {
  chunk_layout layout(prefix.spec);
  size_t per_chunk = layout.objects_per_chunk();
  auto trailing = trailing_objects(prefix.spec);
  uint64_t set_aside = 0;
  chunks = 0;
  steps adding = add_trailing_bytes(prefix, set_aside);
  while (adding.next())
    co_yield {};
  if (set_aside > prefix.room)
    co_return;
  uint64_t most = prefix.room - set_aside, bytes = 0;
  step_pace pace(lease_cut_objects);
  for (size_t i = 0; i < prefix.host.size(); ++i) {
    if (pace.due())
      co_yield {};
    if (trailing[i % per_chunk])
      continue;
    const object_place& here = prefix.host[i];
    const object_place* below = below_of(prefix, i);
    if (here.present())
      bytes += cost_of(prefix, i);
    else if (below != nullptr) // it would come to host memory, and stay as long as the objects behind it
      bytes += below->physical_bytes;
    if (here.present() && below == nullptr && cost_of(prefix, i) != 0 && bytes > most) {
      chunks = i / per_chunk;
      co_return;
    }
  }
  chunks = prefix.host.size() / per_chunk;
}

steps find_kept_in_host(const leased_prefix& prefix, std::vector<bool>& keeps) {
  bool trailing = has_trailing_pools(prefix.spec);
  step_pace pace(lease_cut_objects);
  keeps.assign(prefix.host.size(), false);
  // With trailing pools, objects that are held nowhere else get room first, wherever they are.
  uint64_t must = 0;
  for (size_t i = 0; trailing && i < keeps.size(); ++i) {
    if (prefix.host[i].present() && below_of(prefix, i) == nullptr)
      must += cost_of(prefix, i);
    if (pace.due())
      co_yield {};
  }
  uint64_t bytes = must;
  bool gap = false;
  for (size_t i = 0; i < keeps.size(); ++i) {
    if (pace.due())
      co_yield {};
    const object_place& here = prefix.host[i];
    const object_place* below = below_of(prefix, i);
    if (here.present() && below == nullptr) {
      keeps[i] = true;
      bytes += trailing ? 0 : cost_of(prefix, i);
      continue;
    }
    if (!here.present()) {
      gap = gap || !trailing; // objects that a state or a window does not need are absent here
      bytes += trailing || below == nullptr ? 0 : below->physical_bytes;
      continue;
    }
    bytes += cost_of(prefix, i);
    keeps[i] = !gap && bytes <= prefix.room;
  }
}

} // namespace terrace
