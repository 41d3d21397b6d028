#include "actors/policy_actor.hpp"

#include "policy/eviction_policy.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <map>
#include <unordered_set>

namespace terrace::actors {

namespace {

struct tier_order {
  std::unique_ptr<eviction_policy> policy;
  std::unordered_set<entry_key> pinned;
};

struct policy_state {
  const char* name = "policy";
  std::map<tier_kind, tier_order> orders;
};

policy_time now() {
  return static_cast<policy_time>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void apply(tier_order& order, const policy_notes& notes) {
  policy_time at = now();
  for (const policy_note& note : notes.notes) {
    switch (note.kind) {
      case note_kind::insert: order.policy->insert({note.key, note.parent, note.bytes}, at); break;
      case note_kind::hit: order.policy->hit(note.key, at); break;
      case note_kind::erase:
        order.policy->erase(note.key);
        order.pinned.erase(note.key);
        break;
      case note_kind::pin: order.pinned.insert(note.key); break;
      case note_kind::unpin: order.pinned.erase(note.key); break;
    }
  }
}

policy_actor::behavior_type policy_behavior(policy_actor::stateful_pointer<policy_state> self,
                                            const policy_arguments& arguments) {
  for (const auto& order : arguments.orders)
    self->state.orders[order.tier].policy = std::move(make_eviction_policy(order.policy).value());
  return {
      [self](const policy_notes& notes) {
        if (auto order = self->state.orders.find(notes.tier); order != self->state.orders.end())
          apply(order->second, notes);
      },
      [self](const victim_request& request) {
        victim_answer answer;
        auto order = self->state.orders.find(request.tier);
        if (order == self->state.orders.end()) {
          answer.failure =
              error{errc::internal, std::string("no policy for tier ") + to_string(request.tier)};
          return answer;
        }
        auto may_leave = [&](entry_key key) { return !order->second.pinned.contains(key); };
        for (const victim& named : order->second.policy->victims(request.bytes, may_leave, now()))
          answer.victims.push_back(named.key);
        return answer;
      },
  };
}

} // namespace

policy_actor spawn_policy(caf::actor_system& system, policy_arguments arguments) {
  return system.spawn(policy_behavior, std::move(arguments));
}

} // namespace terrace::actors
