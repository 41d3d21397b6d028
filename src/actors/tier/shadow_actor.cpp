#include "actors/tier/policy_actor.hpp"

#include "base/tier_properties.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>

namespace terrace::actors {

namespace {

struct shadow_state {
  const char* name = "shadow";
  shadow_arguments with;
  std::unique_ptr<shadow_policies> policies;
};

/// The seed of the real host tier.
constexpr uint64_t shadow_seed = policy_seed + static_cast<uint64_t>(memory_tier);

void show(const shadow_state& state) {
  if (!state.with.probe)
    return;
  const auto& caches = state.policies->caches();
  for (size_t i = 0; i < caches.size(); ++i) {
    const shadow_cache& cache = *caches[i];
    state.with.probe->set(i, {cache.counts().asked, cache.counts().hits, cache.counts().evicted,
                              cache.used_bytes(), cache.bytes()});
  }
  state.with.probe->skipped(state.with.shadow_gate->skipped());
}

void on_use(shadow_state& state, const shadow_use& use) {
  state.policies->use(use);
  state.with.shadow_gate->heard(use.prefix->chunks.size());
  show(state);
}

void on_inference_end(shadow_state& state, const inference_end& ended) {
  state.policies->end(ended);
  state.with.shadow_gate->heard(1);
}

void on_clear(shadow_state& state, const shadow_clear& clear) {
  state.policies->clear(clear);
  show(state);
}

shadow_actor::behavior_type shadow_behavior(shadow_actor::stateful_pointer<shadow_state> self,
                                            const shadow_arguments& arguments) {
  auto& state = self->state;
  state.with = arguments;
  state.policies =
      std::make_unique<shadow_policies>(arguments.plans, policy_clock(arguments.clock), shadow_seed);
  return {
      [&state](const shadow_use& use) { on_use(state, use); },
      [&state](const inference_end& ended) { on_inference_end(state, ended); },
      [&state](const shadow_clear& clear) { on_clear(state, clear); },
      [&state](const shadow_request&) { return state.policies->report(); },
  };
}

} // namespace

shadow_actor spawn_shadow(caf::actor_system& system, shadow_arguments arguments) {
  if (arguments.detached)
    return system.spawn<caf::detached>(shadow_behavior, std::move(arguments));
  return system.spawn(shadow_behavior, std::move(arguments));
}

} // namespace terrace::actors
