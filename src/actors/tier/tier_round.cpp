#include "actors/tier/tier_round.hpp"

#include "actors/tier/bring_down.hpp"
#include "actors/tier/tier_quota.hpp"

#include <caf/send.hpp>

namespace terrace::actors {

namespace {

void go_on(tier_pointer self);

void ask_for_victims(tier_pointer self) {
  auto& state = self->state;
  settle(self);          // reports objects that may be named again
  send_kept_notes(self); // the request must follow all earlier events
  self->request(state.policy, caf::infinite, state.changes.question())
      .then(
          [self](const victim_answer& named) {
            self->state.changes.choose(named);
            go_on(self);
          },
          [self](const caf::error&) {
            self->state.changes.give_up("the eviction policy has ended");
            go_on(self);
          });
}

void evict_and_go_on(tier_pointer self) {
  auto& state = self->state;
  if (auto evicted = state.changes.evict()) {
    state.probe->evicted(evicted->own     ? metrics::eviction_reason::quota
                         : evicted->ahead ? metrics::eviction_reason::ahead
                                          : metrics::eviction_reason::space,
                         evicted->objects, evicted->bytes);
    if (evicted->excess_bytes != 0 && !evicted->own)
      state.probe->evicted_too_much(evicted->excess_bytes);
  }
  settle(self); // first, so that the policy is up to date for whoever gets the space
  auto ended = state.changes.take_ended();
  if (!ended) {
    ask_for_victims(self);
    return;
  }
  if (ended->failed())
    state.probe->found_no_victim();
  if (ended->own())
    end_own_round(self, *ended);
  else
    self->send(state.space, room_made{std::move(ended)});
  next_round(self);
}

void go_on(tier_pointer self) {
  if (!bring_victims_down(self, [self] { evict_and_go_on(self); }))
    evict_and_go_on(self);
  else
    settle(self);
}

} // namespace

void on_room_request(tier_pointer self, const room_request& request) {
  self->state.next_round = request.round;
  next_round(self);
}

void begin_round(tier_pointer self, std::shared_ptr<eviction_round> round) {
  self->state.changes.begin(std::move(round));
  ask_for_victims(self);
}

} // namespace terrace::actors
