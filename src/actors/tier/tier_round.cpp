#include "actors/tier/tier_shell.hpp"

#include <caf/send.hpp>

#include <utility>

namespace terrace::actors {

namespace {

void ask_for_victims(tier_pointer self) {
  auto& state = self->state;
  send_kept_notes(self); // the request must follow all earlier events
  auto chosen = [self] {
    auto written = [self] { self->state.step = round_step::evict; };
    self->state.step = bring_victims_down(self, written) ? round_step::wait : round_step::evict;
  };
  self->request(state.policy, caf::infinite, state.changes.question())
      .then(
          [self, chosen](const victim_answer& named) {
            self->state.changes.choose(named);
            chosen();
          },
          [self, chosen](const caf::error&) {
            self->state.changes.give_up("the eviction policy has ended");
            chosen();
          });
}

void evict(tier_pointer self) {
  auto& state = self->state;
  auto evicted = state.changes.evict();
  if (!evicted)
    return;
  state.probe->evicted(evicted->own     ? metrics::eviction_reason::quota
                       : evicted->ahead ? metrics::eviction_reason::ahead
                                        : metrics::eviction_reason::space,
                       evicted->objects, evicted->bytes);
  if (evicted->excess_bytes != 0 && !evicted->own)
    state.probe->evicted_too_much(evicted->excess_bytes);
}

/// Returns false if the policy has to be asked again.
bool end_round(tier_pointer self) {
  auto& state = self->state;
  auto ended = state.changes.take_ended();
  if (!ended)
    return false;
  if (ended->failed())
    state.probe->found_no_victim();
  if (ended->own())
    end_own_round(self, *ended);
  else
    self->send(state.space, room_made{std::move(ended)});
  return true;
}

/// Returns false if there is none to begin.
bool begin_round(tier_pointer self) {
  auto& state = self->state;
  auto round = state.next_round ? std::exchange(state.next_round, nullptr) : next_own_round(self);
  if (!round)
    return false;
  state.changes.begin(std::move(round));
  return true;
}

} // namespace

bool step_round(tier_pointer self) {
  auto& step = self->state.step;
  switch (step) {
    case round_step::none:
      step = begin_round(self) ? round_step::ask : round_step::none;
      return step == round_step::ask;
    case round_step::ask:
      step = round_step::wait;
      ask_for_victims(self);
      return false;
    case round_step::wait: return false;
    case round_step::evict:
      evict(self);
      step = round_step::end;
      return true;
    case round_step::end: step = end_round(self) ? round_step::none : round_step::ask; return true;
  }
  return false;
}

} // namespace terrace::actors
