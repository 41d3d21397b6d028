#include "actors/tier/policy_actor.hpp"

#include "actors/supervision/group_probes.hpp"
#include "runtime/turn_times.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cassert>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace terrace::actors {

namespace {

struct policy_state {
  const char* name = "policy";
  age_probes ages; ///< outlives the policies
  std::optional<group_policies> policies;
  std::shared_ptr<credit_gate> uses;
  std::shared_ptr<event_log> log; ///< null: nobody asks for the policy of an eviction
  bool recording = false;         ///< a `uses_notice` is in flight
};

using policy_pointer = caf::stateful_actor<policy_state, runtime::short_turns<policy_actor::base>>*;

/// Records long chains part by part: other messages are handled in between.
void record_later(policy_pointer self) {
  auto& state = self->state;
  state.recording = state.policies->recording();
  if (state.recording)
    self->send(self, uses_notice{});
}

void on_inference_begin(policy_pointer self, const inference_begin& begun) {
  auto& state = self->state;
  state.policies->begin(begun);
  state.uses->heard(begun.objects.size());
  if (!state.recording)
    record_later(self);
}

void on_uses(policy_pointer self) {
  assert(self->state.recording);
  self->state.policies->record_more();
  record_later(self);
}

void on_inference_end(policy_state& state, const inference_end& ended) {
  state.policies->end(ended);
  state.uses->heard(1);
}

void note_policy(const policy_state& state, tier_kind tier, const std::string& policy) {
  if (state.log)
    state.log->departures().policy_is(tier, policy);
}

set_policy_answer on_set_policy(policy_state& state, const set_policy_request& request) {
  auto answer = state.policies->set_policy(request);
  if (answer.failure.code == errc::ok)
    note_policy(state, request.tier, request.policy);
  return answer;
}

policy_actor::behavior_type policy_behavior(policy_pointer self, const policy_arguments& arguments) {
  auto& state = self->state;
  group_policies& policies = state.policies.emplace(arguments.clock, arguments.remember, &state.ages);
  state.uses = arguments.uses;
  state.log = arguments.log;
  state.ages.keep_for(arguments.log);
  for (const auto& order : arguments.orders) {
    if (!policies.add_tier(order.tier, order.policy))
      std::abort(); // settings were validated
    state.ages.set(static_cast<tier_number>(order.tier), order.probe);
    note_policy(state, order.tier, order.policy);
  }
  return {
      [&policies](const policy_notes& notes) { policies.apply(notes); },
      [&policies](const restored_request& request) {
        policies.apply_restored(request);
        return restored_answer{};
      },
      [](notes_mark mark) { return mark; },
      [self](const inference_begin& begun) { on_inference_begin(self, begun); },
      [self](uses_notice) { on_uses(self); },
      [self](const inference_end& ended) { on_inference_end(self->state, ended); },
      [&policies](const victim_request& request) { return policies.victims(request); },
      [&policies](const admit_request& request) { return policies.admit(request); },
      [self](const set_policy_request& request) { return on_set_policy(self->state, request); },
      [&policies](const check_policy_request& request) { return policies.check(request); },
      [&policies](const policies_request&) { return policies.report(); },
  };
}

} // namespace

policy_actor spawn_policy(caf::actor_system& system, policy_arguments arguments) {
  return system.spawn(policy_behavior, std::move(arguments));
}

} // namespace terrace::actors
