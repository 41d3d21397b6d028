#include "actors/transfer/move_actor.hpp"

#include "actors/transfer/actor_credit_sink.hpp"
#include "runtime/answer.hpp"

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
  tier_parts top; ///< faster than host memory; may be none
  std::optional<move_course> course;
  batch_ptr part;
  hold_ptr held;       ///< of the part, in host memory
  hold_ptr top_held;   ///< of the part, in the faster tier
  object_bitmap above; ///< objects of the part that one of the two has
  hold_ptr arrived;    ///< from there in host memory, until it is held
  answer<move_result> reply;
};

using move_pointer = caf::stateful_actor<move_state>*;

void end_move(move_pointer self, error why = {}) {
  auto& state = self->state;
  state.held = state.top_held = state.arrived = nullptr;
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

object_bitmap either(const object_bitmap& one, const object_bitmap& other) {
  object_bitmap both = one;
  for (size_t i = 0; i < both.size(); ++i)
    if (other.test(i))
      both.set(i);
  return both;
}

/// What the faster tier has of the part; nothing, if there is none.
template <class Then>
void probe_top(move_pointer self, bool hold, Then then) {
  if (self->state.top.returns) {
    probe_part(self, self->state.top.tier, hold, then);
    return;
  }
  probe_answer none;
  none.present = object_bitmap(self->state.part->size());
  then(none);
}

void leave(move_pointer self, const tier_actor& tier, std::vector<object_id> ids) {
  if (!ids.empty() && !self->state.job.stays)
    self->send(tier, discard_notice{std::move(ids), discard_reason::moved});
}

/// What is below leaves the tiers above, unless it is to stay or somebody else holds it as well.
void leave_above(move_pointer self) {
  probe_part(self, self->state.below.tier, false, [self](const probe_answer& below) {
    auto& state = self->state;
    leave(self, state.job.group->host, state.course->written(below.present, state.held.get()));
    leave(self, state.top.tier, state.course->written(below.present, state.top_held.get()));
    probe_part(self, state.job.group->host, false, [self](const probe_answer& host) {
      probe_top(self, false, [self, left = host.present](const probe_answer& top) {
        auto& of = self->state;
        of.held = of.top_held = nullptr; // after the tiers have read the notices
        of.course->left(either(left, top.present));
        move_part(self);
      });
    });
  });
}

/// The credit that the notice carries comes back when its objects are written, or cannot be.
void write_part(move_pointer self) {
  auto& state = self->state;
  if (!state.below.write_through || !state.held) { // nothing came to host memory
    leave_above(self);
    return;
  }
  if (!state.course->writes()) { // who has just written it may still be about to end its hold in host memory
    self->request(state.below.write_through, caf::infinite, check_writes_request{})
        .then([self](const check_writes_answer&) { leave_above(self); },
              [self](const caf::error&) { leave_above(self); });
    return;
  }
  auto credit = std::make_shared<const write_credit>(
      std::make_shared<actor_credit_sink>(caf::actor_cast<caf::actor>(self)), 0);
  self->send(state.below.write_through,
             write_through_notice{state.job.in, state.part, state.held, std::move(credit)});
}

/// What host memory has of the part goes down from there.
void move_from_host(move_pointer self) {
  probe_part(self, self->state.job.group->host, true, [self](const probe_answer& host) {
    self->state.held = host.held;
    self->state.arrived = nullptr;
    self->state.above = either(self->state.above, host.present);
    probe_part(self, self->state.below.tier, false, [self](const probe_answer& below) {
      self->state.course->found(self->state.above, below.present);
      write_part(self);
    });
  });
}

/// What only the faster tier has comes to host memory first.
void give_back(move_pointer self, const object_bitmap& host, const object_bitmap& below) {
  auto& state = self->state;
  std::vector<object_place> places(state.part->size());
  bool any = false;
  for (size_t i = 0; state.top_held && i < places.size(); ++i)
    if (const object_place& there = state.top_held->places()[i];
        there.present() && !host.test(i) && !below.test(i)) {
      places[i] = there;
      any = true;
    }
  if (!any) {
    move_from_host(self);
    return;
  }
  demote_request request;
  request.in = state.job.in;
  request.objects = state.part;
  request.held = part_of(state.top_held, std::move(places));
  self->request(state.top.returns, caf::infinite, std::move(request))
      .then(
          [self](const demote_answer& done) {
            self->state.arrived = done.arrived;
            move_from_host(self);
          },
          [self](const caf::error&) { move_from_host(self); });
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
  probe_top(self, true, [self](const probe_answer& top) {
    self->state.top_held = top.held;
    probe_part(self, self->state.job.group->host, false,
               [self, above = top.present](const probe_answer& host) {
                 self->state.above = either(above, host.present);
                 probe_part(self, self->state.below.tier, false,
                            [self, there = host.present](const probe_answer& below) {
                              give_back(self, there, below.present);
                            });
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
    else if (tier.returns && tier.reads())
      state.top = tier;
  state.course.emplace(job.in, job.chunks, job.before, job.group->window_bytes.load());
  move_part(self);
  return promise;
}

caf::behavior move_behavior(move_pointer self) {
  return {
      [self](const move_job& job) { return on_move(self, job); },
      [self](const write_credit_notice&) { leave_above(self); },
  };
}

} // namespace

caf::actor spawn_move(caf::actor_system& system) { return system.spawn(move_behavior); }

} // namespace terrace::actors
