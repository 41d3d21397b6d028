#include "actors/transfer/prefetch_actor.hpp"

#include "actors/transfer/transfer_steps.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>

namespace terrace::actors {

namespace {

struct prefetch_state {
  const char* name = "prefetch";
  group_ptr group;
  std::unique_ptr<prefetch_course> course;
  context_ptr reading; ///< of reads: they go on when the request ends, because others may wait for them
  answer<prefetch_result> reply;
  std::vector<task<>> lanes; ///< each works on one window at a time
  size_t working = 0;        ///< lanes
  size_t announcing = 0;     ///< of these, how many tell the client what has arrived
  bool ended = false;        ///< the request; its answer waits only for these
};

using prefetch_pointer = caf::stateful_actor<prefetch_state>*;
using prefetch_window = prefetch_course::window;

/// What tiers below hold of the window.
task<result<tier_holds>> hold_below(prefetch_pointer self, const prefetch_window& of) {
  std::vector<question<tier_actor, probe_request>> questions;
  for (const tier_parts& tier : self->state.group->tiers())
    if (tier.reads_below())
      questions.push_back({tier.tier, {of.objects, true, self->state.course->subject().note_access}});
  auto answers = co_await ask_all<probe_answer>(self, std::move(questions), "tier");
  tier_holds below;
  for (auto& found : answers) {
    if (!found)
      co_return tl::unexpected(found.error());
    if (found->held)
      below.push_back({found->tier, std::move(found->held)});
  }
  co_return below;
}

acquire_request space_for(const prefetch_course& course, const prefetch_window& of,
                          const below_reading& reading) {
  acquire_request request;
  request.objects = of.objects;
  request.may_fill.resize(of.objects->size());
  for (size_t i = 0; i < of.objects->size(); ++i)
    request.may_fill[i] = reading.has(i);
  request.may_wait = course.subject().waits;
  request.note_access = course.subject().note_access && of.rounds == 0;
  request.context = course.subject().context;
  return request;
}

/// Reads the reserved objects, from all tiers in parallel, and publishes those that are right and were not cleared
/// meanwhile. Marks them in `there`; the first that was not read is in `damaged`.
task<error> read_window(prefetch_pointer self, below_reading& reading, std::vector<bool>& there,
                        std::optional<size_t>& damaged) {
  auto& state = self->state;
  std::vector<const tier_parts*> tiers;
  std::vector<question<mover_actor, read_request>> reads;
  for (const below_reading::part& part : reading.parts()) {
    tiers.push_back(state.group->tier(part.tier));
    reads.push_back({tiers.back()->mover,
                     reading.read(part, state.course->subject().in, state.reading, *state.group->memory)});
  }
  auto read = co_await ask_all<move_answer>(self, std::move(reads), "mover of a tier");
  std::vector<question<tier_actor, confirm_request>> confirms;
  for (size_t k = 0; k < tiers.size(); ++k) {
    if (auto failure = failure_of(read[k]); failure.code != errc::ok)
      co_return failure;
    auto lost = reading.take_outcomes(k, read[k]->outcomes);
    for (size_t i : lost.objects)
      damaged = std::min(i, damaged.value_or(i));
    if (!lost.damaged.ids.empty())
      self->send(tiers[k]->tier, std::move(lost.damaged));
    if (!lost.stalled.ids.empty())
      self->send(state.group->host, std::move(lost.stalled));
    confirms.push_back({tiers[k]->tier, reading.confirmation(reading.parts()[k])});
  }
  auto confirmed = co_await ask_all<confirm_answer>(self, std::move(confirms), "tier");
  for (size_t k = 0; k < tiers.size(); ++k) {
    if (!confirmed[k])
      co_return confirmed[k].error();
    reading.take_confirmed(k, confirmed[k]->present);
  }
  auto complete = reading.publication();
  complete.in = state.course->subject().in;
  complete.inference = state.reading->inference;
  auto published = co_await ask<publish_answer>(self, state.group->host, std::move(complete), "host tier");
  if (!published)
    co_return published.error();
  for (size_t k = 0; k < tiers.size(); ++k) {
    uint64_t bytes = 0;
    for (size_t i : reading.parts()[k].objects) {
      there[i] = true;
      bytes += reading.acquired().places[i].payload_bytes;
    }
    tiers[k]->probe->read(bytes);
    tiers[k]->probe->prefetched(reading.parts()[k].objects.size(), bytes);
  }
  co_return error{};
}

/// Its counters belong to the client again once it has the answer.
void answer_once_announced(prefetch_pointer self) {
  auto& state = self->state;
  if (state.announcing == 0)
    state.reply.deliver(state.course->result());
}

/// Tells the client what has arrived, in its counter.
task<> announce(prefetch_pointer self) {
  auto& state = self->state;
  copy_request note; // of no bytes
  note.arrived = state.course->next_arrival();
  if (note.arrived.chunks == 0)
    co_return;
  note.context = state.reading;
  ++state.announcing;
  const copier_actor& copier = state.group->copiers->next();
  co_await ask<copy_answer>(self, copier, std::move(note), "copier");
  --state.announcing;
  if (state.ended)
    answer_once_announced(self);
}

/// Brings the window: what others write is awaited, so that one read serves all. A failure ends the prefetch.
task<error> bring(prefetch_pointer self, prefetch_window& of) {
  auto& course = *self->state.course;
  while (true) {
    if (auto failure = why_ended(course.subject().context, "prefetch"); failure.code != errc::ok)
      co_return failure;
    tier_holds below;
    if (of.below) {
      auto held = co_await hold_below(self, of);
      if (!held)
        co_return held.error();
      below = std::move(*held);
    }
    std::optional<below_reading> reading(std::in_place, of.objects, std::move(below));
    auto wanted = space_for(course, of, *reading);
    auto acquired =
        co_await ask<acquire_answer>(self, self->state.group->host, std::move(wanted), "host tier");
    if (auto failure = failure_of(acquired); failure.code != errc::ok)
      co_return failure;
    std::vector<bool> there(of.objects->size());
    for (size_t i = 0; i < there.size(); ++i)
      there[i] = acquired->states[i] == acquired_state::held;
    reading->take_space(std::move(*acquired));
    bool others = reading->others_write();
    bool left =
        !of.below || reading->first_left() != SIZE_MAX; // evicted since they were found in host memory
    std::optional<size_t> damaged;
    if (!reading->empty()) {
      below_reading& begun = *reading;
      auto failure = co_await read_window(self, begun, there, damaged);
      if (failure.code != errc::ok)
        co_return failure;
    }
    auto gap = static_cast<size_t>(std::find(there.begin(), there.end(), false) - there.begin());
    bool again = (others || left) && !damaged && ++of.rounds <= prefetch_course::rounds_max;
    if (gap == there.size() || !again) {
      course.arrived(of, there);
      co_await announce(self);
      if (gap != there.size())
        course.lost(of, gap, damaged && gap == *damaged);
      co_return error{};
    }
    of.below = true;
    reading.reset(); // a waiting request holds nothing
    if (others) {
      await_request written{of.objects, course.subject().context};
      auto finished =
          co_await ask<await_answer>(self, self->state.group->host, std::move(written), "host tier");
      if (auto failure = failure_of(finished); failure.code != errc::ok)
        co_return failure;
    }
  }
}

/// Of its windows.
task<> work(prefetch_pointer self) {
  auto& state = self->state;
  assert(state.working <= prefetch_course::windows_max); // each has one window
  auto next = state.course->next();
  while (next) {
    prefetch_window now = std::move(*next);
    auto failure = co_await bring(self, now);
    if (failure.code != errc::ok) {
      auto ended =
          why_ended(state.course->subject().context, "prefetch"); // says more than what ended with it
      state.course->stop(end_for(ended.code != errc::ok ? ended.code : failure.code));
    }
    next = state.course->next();
  }
  if (--state.working == 0) {
    state.reply.deliver(state.course->result());
    self->quit();
  }
}

auto on_prefetch(prefetch_pointer self, const prefetch_job& job) {
  auto& state = self->state;
  assert(!state.course); // one request
  state.reply = make_answer<prefetch_result>(self);
  auto promise = state.reply.promise();
  state.group = job.group;
  state.course = std::make_unique<prefetch_course>(job, *job.found, *job.expected, job.group->window_bytes);
  state.reading = std::make_shared<request_context>();
  state.reading->work.begin();
  state.reading->group = job.context->group;
  state.reading->connection = job.context->connection;
  state.reading->request = job.context->request;
  state.reading->inference = job.context->inference;
  state.reading->ahead = true;
  state.working = prefetch_course::windows_max;
  for (size_t i = 0; i < prefetch_course::windows_max; ++i)
    state.lanes.push_back(work(self));
  for (task<>& lane : state.lanes)
    lane.start();
  return promise;
}

/// What arrives from now on stays, and is not counted.
void on_stop(prefetch_pointer self) {
  auto& state = self->state;
  if (!state.course)
    return;
  state.course->stop(end_for(state.course->subject().context->ended.load()));
  state.ended = true;
  answer_once_announced(self);
}

caf::behavior prefetch_behavior(prefetch_pointer self) {
  return {
      [self](const prefetch_job& job) { return on_prefetch(self, job); },
      [self](stop_prefetch_notice) { on_stop(self); },
  };
}

} // namespace

caf::actor spawn_prefetch(caf::actor_system& system) { return system.spawn(prefetch_behavior); }

} // namespace terrace::actors
