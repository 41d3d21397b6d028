#include "actors/transfer/move_actor.hpp"

#include "actors/transfer/actor_credit_sink.hpp"
#include "coroutine/answer.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <optional>

namespace terrace::actors {

namespace {

struct move_state {
  const char* name = "move";
  move_job job;
  tier_parts below;
  std::optional<move_course> course;
  batch_ptr part;
  hold_ptr held; ///< of the part, in host memory
  answer<move_result> reply;
};

using move_pointer = caf::stateful_actor<move_state>*;

void end_move(move_pointer self, error why = {}) {
  auto& state = self->state;
  state.held = nullptr;
  state.reply.deliver({std::move(why), state.course ? state.course->sum() : moved_chunks{}});
  self->quit();
}

template <class Tier, class Then>
void probe_part(move_pointer self, const Tier& tier, bool hold, Then then) {
  probe_request probe;
  probe.objects = self->state.part;
  probe.hold = hold;
  probe.note_access = false;
  self->request(tier, caf::infinite, std::move(probe))
      .then([then](const probe_answer& found) { then(found); },
            [self](const caf::error&) {
              end_move(self, {errc::internal, "a tier has ended"});
            });
}

void move_part(move_pointer self);

/// What is below leaves host memory, unless it is to stay or somebody else holds it as well.
void leave_host(move_pointer self) {
  probe_part(self, self->state.below.tier, false, [self](const probe_answer& below) {
    auto& state = self->state;
    auto leaving = state.course->written(below.present, state.held.get());
    if (!leaving.empty() && !state.job.stays)
      self->send(state.job.group->host, discard_notice{std::move(leaving), discard_reason::moved});
    probe_part(self, state.job.group->host, false, [self](const probe_answer& above) {
      self->state.held = nullptr; // after the tier has read the notice
      self->state.course->left(above.present);
      move_part(self);
    });
  });
}

/// The credit that the notice carries comes back when its objects are written, or cannot be.
void write_part(move_pointer self) {
  auto& state = self->state;
  if (!state.below.write_through) {
    leave_host(self);
    return;
  }
  if (!state.course->writes()) { // who has just written it may still be about to end its hold in host memory
    self->request(state.below.write_through, caf::infinite, check_writes_request{})
        .then([self](const check_writes_answer&) { leave_host(self); },
              [self](const caf::error&) { leave_host(self); });
    return;
  }
  auto credit = std::make_shared<const write_credit>(
      std::make_shared<actor_credit_sink>(caf::actor_cast<caf::actor>(self)), 0);
  self->send(state.below.write_through,
             write_through_notice{state.job.in, state.part, state.held, std::move(credit)});
}

void move_part(move_pointer self) {
  auto& state = self->state;
  if (auto why = why_ended(state.job.context, "move"); why.code != errc::ok) {
    end_move(self, std::move(why));
    return;
  }
  state.part = state.course->next();
  if (!state.part) {
    end_move(self);
    return;
  }
  probe_part(self, state.job.group->host, true, [self](const probe_answer& above) {
    self->state.held = above.held;
    auto there = above.present;
    probe_part(self, self->state.below.tier, false, [self, there](const probe_answer& below) {
      self->state.course->found(there, below.present);
      write_part(self);
    });
  });
}

caf::result<move_result> on_move(move_pointer self, const move_job& job) {
  auto& state = self->state;
  state.job = job;
  state.reply = make_answer<move_result>(self);
  auto promise = state.reply.promise();
  for (const tier_parts& tier : job.group->tiers())
    if (tier.kind == job.to)
      state.below = tier;
  state.course.emplace(job.in, job.chunks, job.before, job.group->window_bytes.load());
  move_part(self);
  return promise;
}

caf::behavior move_behavior(move_pointer self) {
  return {
      [self](const move_job& job) { return on_move(self, job); },
      [self](const write_credit_notice&) { leave_host(self); },
  };
}

} // namespace

caf::actor spawn_move(caf::actor_system& system) { return system.spawn(move_behavior); }

} // namespace terrace::actors
