#include "actors/transfer/transfer_actors.hpp"

#include "actors/transfer/bring.hpp"
#include "base/tier_properties.hpp"
#include "index/object_header.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>

namespace terrace::actors {

// Named, since a template's frame has it.
struct prefetch_state {
  const char* name = "prefetch";
  group_ptr group;
  std::unique_ptr<prefetch_plan> planned;
  context_ptr reading; ///< of reads: they go on when the request ends, because others may wait for them
  answer<prefetch_result> reply;
  std::vector<task<>> lanes;  ///< each works on one window at a time
  std::vector<hold_ptr> kept; ///< in the tier, until the end: what comes later does not take its place
  size_t working = 0;         ///< lanes
  size_t announcing = 0;      ///< of these, how many tell the client what has arrived
  bool ended = false;         ///< the request; its answer waits only for these
};

namespace {

using prefetch_pointer = caf::stateful_actor<prefetch_state>*;
using prefetch_window = prefetch_plan::window;

/// What has become of a window's objects in host memory.
struct brought_window {
  std::vector<bool> there;
  std::optional<size_t> damaged; ///< the first that could not be read
  bool late = false;             ///< some of it did not come in time
  bool keeps = false;            ///< `kept` is wanted
  std::vector<hold_ptr> kept;    ///< what is there stays until these end

  size_t gap() const {
    return static_cast<size_t>(std::find(there.begin(), there.end(), false) - there.begin());
  }
  bool whole() const { return gap() == there.size(); }
};

acquire_request space_for(const prefetch_plan& planned, const prefetch_window& window, const passage& pass) {
  acquire_request request;
  request.objects = window.objects;
  request.may_fill.resize(window.objects->size());
  for (size_t i = 0; i < window.objects->size(); ++i)
    request.may_fill[i] = pass.has(i);
  request.may_wait = planned.subject().waits;
  request.note_access = planned.subject().note_access && window.rounds == 0;
  request.context = planned.subject().context;
  return request;
}

/// The way of what tiers below hold of the window into host memory.
passage::plan plan_of(prefetch_pointer self, const prefetch_window& window, tier_holds below, bool keeps) {
  const auto& state = self->state;
  passage::plan plan;
  plan.space = state.planned->subject().space;
  plan.objects = window.objects;
  plan.from = std::move(below);
  plan.way = direction::into_host;
  plan.memory = state.group->memory.get();
  plan.context = state.reading;
  plan.name = "prefetch";
  plan.inference = state.reading->inference;
  plan.hold = keeps;
  plan.read_by = state.planned->subject().read_by;
  return plan;
}

/// What is in host memory now, and what was read from each tier.
void note_brought(prefetch_pointer self, const passage& pass, brought_window& brought) {
  const auto& states = pass.acquired().states;
  brought.there.assign(states.size(), false);
  for (size_t i = 0; i < states.size(); ++i)
    brought.there[i] = states[i] == acquired_state::held;
  for (size_t i : pass.ended().lost)
    brought.damaged = std::min(i, brought.damaged.value_or(i));
  brought.late = pass.ended().late;
  if (brought.keeps)
    brought.kept = {pass.acquired().held, pass.published()};
  for (const passage::part& part : pass.parts()) {
    for (size_t i : part.objects)
      brought.there[i] = true;
    const tier_handle& tier = *self->state.group->tier(part.tier);
    const uint64_t bytes = pass.payload_bytes(part);
    tier.probe->read(bytes);
    tier.probe->prefetched(part.objects.size(), bytes);
  }
}

/// Its counters belong to the client again once it has the answer.
void answer_once_announced(prefetch_pointer self) {
  auto& state = self->state;
  if (state.announcing == 0)
    state.reply.deliver(state.planned->result());
}

/// Tells the client what has arrived, in its counter.
task<> announce(prefetch_pointer self) {
  auto& state = self->state;
  copy_request note; // of no bytes
  note.arrived = state.planned->next_arrival();
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

/// One round of bringing the window into host memory. What remains is worth another: others write it, or it was evicted since
/// it was found there.
struct brought_round {
  bool others = false;
  bool left = false;
};
task<result<brought_round>> bring_round(prefetch_pointer self, const prefetch_window& window,
                                        brought_window& brought) {
  const auto& state = self->state;
  tier_holds below;
  if (window.below) {
    batch_ptr objects = window.objects;
    const bool uses = state.planned->subject().note_access;
    auto held = co_await hold_below(self, *state.group, std::move(objects), uses);
    if (!held)
      co_return tl::unexpected(held.error());
    below = std::move(*held);
  }
  passage pass(plan_of(self, window, std::move(below), brought.keeps));
  pass.ask_for(space_for(*state.planned, window, pass));
  const tier_handle& host = state.group->tiers().front();
  auto failure = co_await bring(self, pass, *state.group, host);
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  brought.damaged.reset();
  note_brought(self, pass, brought);
  co_return brought_round{pass.others_write(), !window.below || pass.first_left() != SIZE_MAX};
}

/// Into host memory: what others write is awaited, so that one read serves all. A failure ends the prefetch.
task<error> bring_window(prefetch_pointer self, prefetch_window& window, brought_window& brought) {
  const auto& context = self->state.planned->subject().context;
  while (true) {
    if (auto failure = why_ended(context, "prefetch"); failure.code != errc::ok)
      co_return failure;
    auto round =
        co_await bring_round(self, window, brought); // a waiting request holds nothing: neither does this
    if (!round)
      co_return round.error();
    bool again = (round->others || round->left) && !brought.damaged && !brought.late &&
                 ++window.rounds <= prefetch_plan::rounds_max;
    if (brought.whole() || !again)
      co_return error{};
    window.below = true;
    brought.kept.clear();
    if (round->others) {
      await_request written{window.objects, context};
      auto finished =
          co_await ask<await_answer>(self, self->state.group->host, std::move(written), "host tier");
      if (auto failure = failure_of(finished); failure.code != errc::ok)
        co_return failure;
    }
  }
}

/// Into host memory, and that is all.
task<error> bring_to_host(prefetch_pointer self, prefetch_window& window) {
  brought_window brought;
  auto failure = co_await bring_window(self, window, brought);
  if (failure.code != errc::ok)
    co_return failure;
  auto& planned = *self->state.planned;
  planned.arrived(window, brought.there);
  co_await announce(self);
  if (brought.late)
    planned.fall_behind();
  else if (size_t gap = brought.gap(); !brought.whole())
    planned.lost(window, gap, brought.damaged && gap == *brought.damaged);
  co_return error{};
}

// ---- to a tier above host memory ----

/// What the tier has of the objects, held.
task<result<hold_ptr>> hold_above(prefetch_pointer self, const tier_handle& above, const batch_ptr& objects,
                                  bool uses) {
  probe_request wanted{objects, true, uses};
  auto found = co_await ask<probe_answer>(self, above.tier, std::move(wanted), "tier above host memory");
  if (!found)
    co_return tl::unexpected(found.error());
  co_return found->held;
}

bool holds(const hold_ptr& held, size_t object) { return held && held->places()[object].present(); }

/// The objects of the window that the tier lacks, as a window of their own. `which`: their indices in the whole.
prefetch_window rest_of(const prefetch_window& window, const hold_ptr& held, std::vector<size_t>& which) {
  auto batch = std::make_shared<object_batch>();
  batch->trailing = window.objects->trailing;
  prefetch_window rest;
  for (size_t i = 0; i < window.objects->size(); ++i) {
    if (holds(held, i))
      continue;
    batch->keys.push_back(window.objects->keys[i]);
    batch->parents.push_back(window.objects->parents[i]);
    batch->payload_bytes.push_back(window.objects->payload_bytes[i]);
    rest.chunks.push_back(window.chunks[i]);
    which.push_back(i);
  }
  rest.objects = std::move(batch);
  rest.below = true;
  rest.rounds = window.rounds;
  return rest;
}

uint64_t space_of(const object_batch& objects) {
  uint64_t bytes = 0;
  for (uint64_t payload : objects.payload_bytes)
    bytes += physical_bytes_for(payload);
  return bytes;
}

/// What the tier lacks of a window. Credit is taken before memory, as a store does it.
task<result<demotion_counts>> bring_rest(prefetch_pointer self, const tier_handle& above,
                                         prefetch_window& rest, brought_window& brought) {
  write_credit_request wanted{space_of(*rest.objects), self->state.planned->subject().context};
  const write_through_actor& writer = above.write_through;
  auto given = co_await ask<write_credit_answer>(self, writer, std::move(wanted), "write-through of a tier");
  if (auto failure = failure_of(given); failure.code != errc::ok)
    co_return tl::unexpected(failure);
  brought.keeps = true;
  auto failure = co_await bring_window(self, rest, brought);
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  probe_request what{rest.objects, true, false};
  auto held = co_await ask<probe_answer>(self, self->state.group->host, std::move(what), "host tier");
  if (!held)
    co_return tl::unexpected(held.error());
  if (!held->held)
    co_return demotion_counts{};
  demote_request request;
  request.space = self->state.planned->subject().space;
  request.objects = rest.objects;
  request.held = held->held;
  request.turn = demotion_turn::if_credit;
  request.credit = given->credit;
  auto written = co_await ask<demote_answer>(self, writer, std::move(request), "write-through of a tier");
  if (auto ended = failure_of(written); ended.code != errc::ok)
    co_return tl::unexpected(ended);
  co_return written->done;
}

task<error> bring_above(prefetch_pointer self, prefetch_window& window) {
  auto& planned = *self->state.planned;
  const tier_handle& above = *self->state.group->tier(planned.subject().to);
  bool uses = planned.subject().note_access;
  auto held = co_await hold_above(self, above, window.objects, uses);
  if (!held)
    co_return held.error();
  std::vector<size_t> which;
  prefetch_window rest = rest_of(window, *held, which);
  brought_window brought;
  demotion_counts written;
  if (!which.empty()) {
    auto done = co_await bring_rest(self, above, rest, brought);
    if (!done)
      co_return done.error();
    written = *done;
    held = co_await hold_above(self, above, window.objects, false);
    if (!held)
      co_return held.error();
  }
  std::vector<bool> there(window.objects->size());
  for (size_t i = 0; i < there.size(); ++i)
    there[i] = holds(*held, i);
  self->state.kept.push_back(*held);
  planned.arrived(window, there);
  co_await announce(self);
  auto gap = static_cast<size_t>(std::find(there.begin(), there.end(), false) - there.begin());
  if (gap == there.size())
    co_return error{};
  auto lost = [&written](refusal_reason why) { return written.lost[static_cast<size_t>(why)]; };
  if (lost(refusal_reason::no_room) + lost(refusal_reason::quota) != 0)
    planned.stop(prefetch_end::no_room);
  else if (brought.late)
    planned.fall_behind();
  else
    planned.lost(window, gap, brought.damaged && which[*brought.damaged] == gap);
  co_return error{};
}

/// Of its windows.
task<> work(prefetch_pointer self) {
  auto& state = self->state;
  assert(state.working <= prefetch_plan::windows_max); // each has one window
  auto next = state.planned->next();
  while (next) {
    prefetch_window now = std::move(*next);
    error failure;
    if (state.planned->subject().to == memory_tier) {
      failure = co_await bring_to_host(self, now);
    } else {
      failure = co_await bring_above(self, now);
    }
    if (failure.code != errc::ok) {
      auto ended =
          why_ended(state.planned->subject().context, "prefetch"); // says more than what ended with it
      state.planned->stop(end_for(ended.code != errc::ok ? ended.code : failure.code));
    }
    next = state.planned->next();
  }
  if (--state.working == 0) {
    state.kept.clear();
    state.reply.deliver(state.planned->result());
    self->quit();
  }
}

auto on_prefetch(prefetch_pointer self, const prefetch_job& job) {
  auto& state = self->state;
  assert(!state.planned); // one request
  state.reply = make_answer<prefetch_result>(self);
  auto promise = state.reply.promise();
  state.group = job.group;
  state.planned = std::make_unique<prefetch_plan>(job, *job.found, *job.expected, job.group->window_bytes);
  state.reading = std::make_shared<request_context>();
  state.reading->work.begin();
  state.reading->group = job.context->group;
  state.reading->connection = job.context->connection;
  state.reading->request = job.context->request;
  state.reading->inference = job.context->inference;
  state.reading->ahead = true;
  state.working = prefetch_plan::windows_max;
  for (size_t i = 0; i < prefetch_plan::windows_max; ++i)
    state.lanes.push_back(work(self));
  for (task<>& lane : state.lanes)
    lane.start();
  return promise;
}

/// What arrives from now on stays, and is not counted.
void on_stop(prefetch_pointer self) {
  auto& state = self->state;
  if (!state.planned)
    return;
  state.planned->stop(end_for(state.planned->subject().context->ended.load()));
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
