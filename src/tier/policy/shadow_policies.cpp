#include "tier/policy/shadow_policies.hpp"

#include "index/chunk_layout.hpp"
#include "index/object_header.hpp"

#include <cstdlib>

namespace terrace {

namespace {

constexpr int space_shift = 32; ///< in the high half of a key, which leaves 96 bits

entry_key name_of(const object_key& key) {
  entry_key name = to_entry_key(key);
  name.high =
      static_cast<uint64_t>(key.space) << space_shift | (name.high & ((uint64_t{1} << space_shift) - 1));
  return name;
}

} // namespace

shadow_policies::shadow_policies(const std::vector<shadow_plan>& plans, policy_clock clock, uint64_t seed)
    : clock_(clock) {
  for (const shadow_plan& plan : plans) {
    auto cache = shadow_cache::make(plan.policy, plan.capacity_bytes, seed);
    if (!cache)
      std::abort(); // settings were validated
    caches_.push_back(std::move(*cache));
  }
}

void shadow_policies::use(const shadow_use& use) {
  if (use.inference != 0 && inferences_.contains(use.inference))
    return; // the only access of an inference was already counted
  clock_.hear(use.told);
  auto entries = entries_of(use);
  policy_time at = clock_.now();
  request_number number = 0;
  request_hints hints = use.hints;
  hints.space = static_cast<uint32_t>(use.space->id);
  for (auto& cache : caches_) {
    if (use.inference != 0)
      number = cache->begin(entries, hints, at);
    else
      cache->use(entries, at);
  }
  if (use.inference != 0)
    inferences_.begin(use.inference, number);
}

void shadow_policies::end(const inference_end& ended) {
  clock_.hear(ended.told);
  request_number number = inferences_.end(ended.inference);
  if (number == 0)
    return;
  policy_time at = clock_.now();
  for (auto& cache : caches_)
    cache->end(number, ended.outcome, at);
}

void shadow_policies::clear(const shadow_clear& clear) {
  for (auto& cache : caches_)
    cache->clear([&](entry_key key) { return !clear.space || is_of(*clear.space, key); });
}

shadow_report shadow_policies::report() const {
  shadow_report made;
  for (const auto& cache : caches_)
    made.lines.push_back({std::string(cache->policy()), cache->capacity_bytes(), cache->used_bytes(),
                          cache->residents(), cache->bytes(), cache->counts()});
  return made;
}

bool is_of(space_id space, entry_key key) { return key.high >> space_shift == static_cast<uint64_t>(space); }

std::vector<entry_info> entries_of(const shadow_use& use) {
  const space_spec& spec = use.space->spec;
  chunk_layout layout(spec);
  std::vector<entry_info> entries;
  const digest* before = use.prefix->parent ? &*use.prefix->parent : nullptr;
  for (const digest& chunk : use.prefix->chunks) {
    for (size_t pool = 0; pool < spec.pools.size(); ++pool) {
      if (spec.pools[pool].rule != hit_rule::all_chunks)
        continue;
      for (uint32_t rank = 0; rank < layout.ranks(pool); ++rank) {
        if (use.rank && layout.ranks(pool) > 1 && rank != *use.rank)
          continue;
        object_key key{use.space->id, static_cast<uint16_t>(pool), static_cast<uint16_t>(rank), chunk};
        entry_info& entry = entries.emplace_back();
        entry.key = name_of(key);
        entry.bytes = physical_bytes_for(spec.pools[pool].object_bytes);
        if (before != nullptr) {
          key.chunk = *before;
          entry.parent = name_of(key);
        }
      }
    }
    before = &chunk;
  }
  return entries;
}

} // namespace terrace
