#include "actors/tier/shadow_actor.hpp"

#include "actors/tier/policy_actor.hpp"
#include "index/chunk_layout.hpp"
#include "storage/object_header.hpp"
#include "tier/open_inferences.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdlib>

namespace terrace::actors {

namespace {

struct shadow_state {
  const char* name = "shadow";
  shadow_arguments with;
  std::vector<std::unique_ptr<shadow_cache>> caches;
  open_inferences inferences; ///< all caches number their requests alike
  policy_clock clock;
};

/// The seed of the real host tier.
constexpr uint64_t shadow_seed = policy_seed + static_cast<uint64_t>(tier_kind::host);

constexpr int space_shift = 32; ///< in the high half of a key, which leaves 96 bits

entry_key name_of(const object_key& key) {
  entry_key name = to_entry_key(key);
  name.high =
      static_cast<uint64_t>(key.space) << space_shift | (name.high & ((uint64_t{1} << space_shift) - 1));
  return name;
}

void hear(shadow_state& state, const shadow_use& use) {
  if (use.inference != 0 && state.inferences.contains(use.inference))
    return; // its one access was already counted
  state.clock.hear(use.told);
  auto entries = entries_of(use);
  policy_time at = state.clock.now();
  request_number number = 0;
  request_hints hints = use.hints;
  hints.space = static_cast<uint32_t>(use.in->id);
  for (auto& cache : state.caches) {
    if (use.inference != 0)
      number = cache->begin(entries, hints, at);
    else
      cache->use(entries, at);
  }
  if (use.inference != 0)
    state.inferences.begin(use.inference, number);
}

void end(shadow_state& state, const inference_end& what) {
  state.clock.hear(what.told);
  request_number number = state.inferences.end(what.inference);
  if (number == 0)
    return;
  policy_time at = state.clock.now();
  for (auto& cache : state.caches)
    cache->end(number, what.outcome, at);
}

void clear(shadow_state& state, const shadow_clear& what) {
  for (auto& cache : state.caches)
    cache->clear([&](entry_key key) { return !what.space || is_of(*what.space, key); });
}

void show(const shadow_state& state) {
  if (!state.with.probe)
    return;
  for (size_t i = 0; i < state.caches.size(); ++i) {
    const shadow_cache& cache = *state.caches[i];
    state.with.probe->set(i, {cache.counts().asked, cache.counts().hits, cache.counts().evicted,
                              cache.used_bytes(), cache.bytes()});
  }
  state.with.probe->skipped(state.with.feed->skipped());
}

shadow_report report(const shadow_state& state) {
  shadow_report made;
  for (const auto& cache : state.caches)
    made.lines.push_back({std::string(cache->policy()), cache->capacity_bytes(), cache->used_bytes(),
                          cache->residents(), cache->bytes(), cache->counts()});
  return made;
}

shadow_actor::behavior_type shadow_behavior(shadow_actor::stateful_pointer<shadow_state> self,
                                            const shadow_arguments& arguments) {
  self->state.with = arguments;
  self->state.clock = policy_clock(arguments.clock);
  for (const shadow_plan& plan : arguments.plans) {
    auto cache = shadow_cache::make(plan.policy, plan.capacity_bytes, shadow_seed);
    if (!cache)
      std::abort(); // settings were validated
    self->state.caches.push_back(std::move(*cache));
  }
  return {
      [self](const shadow_use& use) {
        hear(self->state, use);
        self->state.with.feed->heard(use.prefix->chunks.size());
        show(self->state);
      },
      [self](const inference_end& what) { end(self->state, what); },
      [self](const shadow_clear& what) {
        clear(self->state, what);
        show(self->state);
      },
      [self](const shadow_request&) { return report(self->state); },
  };
}

} // namespace

bool is_of(space_id space, entry_key key) { return key.high >> space_shift == static_cast<uint64_t>(space); }

std::vector<entry_info> entries_of(const shadow_use& use) {
  const space_spec& spec = use.in->spec;
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
        object_key key{use.in->id, static_cast<uint16_t>(pool), static_cast<uint16_t>(rank), chunk};
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

shadow_actor spawn_shadow(caf::actor_system& system, shadow_arguments arguments) {
  if (arguments.detached)
    return system.spawn<caf::detached>(shadow_behavior, std::move(arguments));
  return system.spawn(shadow_behavior, std::move(arguments));
}

} // namespace terrace::actors
