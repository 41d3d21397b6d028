#include "actors/lookup_actor.hpp"

#include "actors/answer.hpp"
#include "index/chunk_layout.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

namespace terrace::actors {

namespace {

struct lookup_state {
  const char* name = "lookup";
  lookup_request request;
  answer<lookup_answer> reply;
  std::vector<tier_answer> answers;
  hold_ptr host;
  hold_ptr disk;
  size_t waiting_for = 0;
  bool lost_tier = false;
};

using self_pointer = caf::stateful_actor<lookup_state>*;

void finish(self_pointer self) {
  auto& state = self->state;
  lookup_answer answer;
  if (state.lost_tier)
    answer.failure = {errc::internal, "a tier has ended"};
  answer.plan = make_prefix_plan(state.request.in->spec, state.request.plan, state.answers);
  size_t kept = answer.plan.found_chunks * chunk_layout(state.request.in->spec).objects_per_chunk();
  for (hold_ptr* held : {&state.host, &state.disk})
    if (*held)
      (*held)->keep_first(kept);
  answer.host = kept == 0 ? nullptr : std::move(state.host);
  answer.disk = kept == 0 ? nullptr : std::move(state.disk);
  state.host.reset();
  state.disk.reset();
  state.answers.clear();
  state.lost_tier = false;
  state.request = {};
  std::exchange(state.reply, {}).deliver(std::move(answer));
}

void one_less(self_pointer self) {
  if (--self->state.waiting_for == 0)
    finish(self);
}

void merge(self_pointer self, const probe_answer& found, hold_ptr lookup_state::*held) {
  self->state.answers.push_back({found.tier, found.present});
  self->state.*held = found.held;
  one_less(self);
}

void ask(self_pointer self, const tier_actor& tier, hold_ptr lookup_state::*held) {
  const auto& request = self->state.request;
  self->request(tier, caf::infinite, probe_request{request.objects, request.hold, request.hold})
      .then([self, held](const probe_answer& found) { merge(self, found, held); },
            [self](const caf::error&) {
              self->state.lost_tier = true;
              one_less(self);
            });
}

bool may_ask(const lookup_request& request, tier_kind tier, const std::atomic<uint64_t>& population) {
  bool allowed = request.tiers == 0 || (request.tiers >> static_cast<unsigned>(tier) & 1) != 0;
  return allowed && population.load(std::memory_order_acquire) != 0;
}

caf::behavior lookup_behavior(self_pointer self) {
  return {
      [self](const lookup_request& request) {
        auto& state = self->state;
        state.request = request;
        state.reply = make_answer<lookup_answer>(self);
        auto promise = state.reply.promise();
        const group_parts& group = *request.group;
        bool host = may_ask(request, tier_kind::host, *group.host_population);
        bool disk = group.disk() && may_ask(request, tier_kind::disk, *group.disk()->population);
        state.waiting_for = size_t{host} + size_t{disk};
        if (host)
          ask(self, group.host, &lookup_state::host);
        if (disk)
          ask(self, group.disk()->tier, &lookup_state::disk);
        if (!host && !disk)
          finish(self);
        return promise;
      },
  };
}

} // namespace

caf::actor spawn_lookup(caf::actor_system& system) { return system.spawn(lookup_behavior); }

} // namespace terrace::actors
