#include "actors/tier/policy_actor.hpp"

#include "policy/eviction_tracker.hpp"
#include "runtime/short_turns.hpp"
#include "tier/chain_uses.hpp"
#include "tier/open_inferences.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

namespace terrace::actors {

namespace {

/// Passes the ages of accesses to the tiers' probes.
class age_probes final : public age_observer {
 public:
  void set(tier_number tier, std::shared_ptr<metrics::tier_probe> probe) {
    probes_.at(tier) = std::move(probe);
  }
  void reused(tier_number tier, std::chrono::milliseconds after) override {
    if (auto& probe = probes_[tier])
      probe->reused(after);
  }
  void evicted(tier_number tier, std::chrono::milliseconds age) override {
    if (auto& probe = probes_[tier])
      probe->unused_until_evicted(age);
  }

 private:
  std::array<std::shared_ptr<metrics::tier_probe>, tiers_max> probes_;
};

struct policy_state {
  const char* name = "policy";
  age_probes ages; ///< outlives the tracker
  std::unique_ptr<eviction_tracker> tracker;
  open_inferences inferences;
  chain_uses chains;
  bool recording = false; ///< a `uses_notice` is under way
  policy_clock clock;
  std::shared_ptr<edge_credit> uses;
};

using self_pointer = caf::stateful_actor<policy_state, runtime::short_turns<policy_actor::base>>*;

void apply(policy_state& state, const policy_notes& notes) {
  eviction_tracker& tracker = *state.tracker;
  policy_time at = state.clock.now();
  request_number request = notes.inference == 0 ? 0 : state.inferences.find(notes.inference);
  auto tier = static_cast<tier_number>(notes.tier);
  for (const policy_note& note : notes.notes) {
    switch (note.kind) {
      case note_kind::insert: tracker.insert(tier, {note.key, note.parent, note.bytes}, at, request); break;
      case note_kind::hit: tracker.hit(tier, note.key, at); break;
      case note_kind::erase: tracker.erase(tier, note.key); break;
      case note_kind::evict: tracker.evict(tier, note.key); break;
      case note_kind::pin: tracker.pin(tier, note.key); break;
      case note_kind::unpin: tracker.unpin(tier, note.key); break;
    }
  }
}

void begin(policy_state& state, const inference_begin& what) {
  if (state.inferences.contains(what.inference))
    return;
  state.clock.hear(what.told);
  request_hints hints = what.hints;
  if (auto first = what.objects.cut(0, 1); first.range.count != 0)
    hints.space = static_cast<uint32_t>(first.objects->keys[first.range.first].space);
  auto number = state.chains.begin(*state.tracker, what.objects, hints, state.clock.now());
  state.inferences.begin(what.inference, number);
}

/// Records long chains part by part: other messages are handled in between.
void record_uses(self_pointer self) {
  auto& state = self->state;
  bool more = !state.chains.idle() && state.chains.step(*state.tracker, state.clock.now());
  if (more)
    self->send(self, uses_notice{});
  else
    state.recording = false;
}

void end(policy_state& state, const inference_end& what) {
  state.clock.hear(what.told);
  if (request_number request = state.inferences.end(what.inference); request != 0)
    state.tracker->end_request(request, what.outcome, state.clock.now());
}

set_policy_answer set_policy(policy_state& state, const set_policy_request& request) {
  set_policy_answer answer;
  auto tier = static_cast<tier_number>(request.tier);
  answer.before = state.tracker->policy(tier);
  if (answer.before.empty())
    answer.failure = {errc::not_found,
                      std::string("this trust group has no ") + to_string(request.tier) + " tier"};
  else if (auto set = state.tracker->set_policy(tier, request.policy); !set)
    answer.failure = set.error();
  return answer;
}

policies_report report(const eviction_tracker& tracker) {
  policies_report made;
  for (tier_kind kind : {tier_kind::host, tier_kind::disk})
    if (auto tier = static_cast<tier_number>(kind); !tracker.policy(tier).empty())
      made.tiers.push_back({kind, std::string(tracker.policy(tier)), tracker.residents(tier)});
  made.tracked = tracker.tracked();
  made.ghosts = tracker.ghosts();
  made.bookkeeping_bytes = tracker.bytes();
  return made;
}

policy_actor::behavior_type policy_behavior(self_pointer self, const policy_arguments& arguments) {
  self->state.tracker = std::make_unique<eviction_tracker>(policy_seed, arguments.remember);
  self->state.clock = policy_clock(arguments.clock);
  self->state.uses = arguments.uses;
  self->state.tracker->set_observer(&self->state.ages);
  for (const auto& order : arguments.orders) {
    if (!self->state.tracker->set_policy(static_cast<tier_number>(order.tier), order.policy))
      std::abort(); // settings were validated
    self->state.ages.set(static_cast<tier_number>(order.tier), order.probe);
  }
  return {
      [self](const policy_notes& notes) { apply(self->state, notes); },
      [self](const restored_request& request) {
        apply(self->state, request.found);
        return restored_answer{};
      },
      [](notes_mark mark) { return mark; },
      [self](const inference_begin& what) {
        begin(self->state, what);
        self->state.uses->heard(what.objects.size());
        if (!self->state.chains.idle() && !std::exchange(self->state.recording, true))
          self->send(self, uses_notice{});
      },
      [self](uses_notice) { record_uses(self); },
      [self](const inference_end& what) {
        end(self->state, what);
        self->state.uses->heard(1);
      },
      [self](const victim_request& request) {
        victim_answer answer;
        auto tier = static_cast<tier_number>(request.tier);
        if (self->state.tracker->policy(tier).empty()) {
          answer.failure =
              error{errc::internal, std::string("no policy for tier ") + to_string(request.tier)};
          return answer;
        }
        request_number spared = request.inference == 0 ? 0 : self->state.inferences.find(request.inference);
        for (const victim& named :
             self->state.tracker->victims(tier, {request.bytes, spared}, self->state.clock.now())) {
          answer.victims.push_back(named.key);
          answer.above.push_back(named.above);
          answer.bytes += named.bytes;
        }
        return answer;
      },
      [self](const admit_request& request) {
        admit_answer answer;
        answer.admitted = self->state.tracker->admitted(
            static_cast<tier_number>(request.tier), request.entries, request.rule, self->state.clock.now());
        return answer;
      },
      [self](const set_policy_request& request) { return set_policy(self->state, request); },
      [self](const policies_request&) { return report(*self->state.tracker); },
  };
}

} // namespace

policy_actor spawn_policy(caf::actor_system& system, policy_arguments arguments) {
  return system.spawn(policy_behavior, std::move(arguments));
}

} // namespace terrace::actors
