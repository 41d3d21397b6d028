#include "actors/transfer/transfer_actors.hpp"

#include "actors/transfer/transfer_steps.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <cassert>
#include <utility>

namespace terrace::actors {

namespace {

struct move_state {
  const char* name = "move";
  task<> progress;
};

using move_pointer = caf::stateful_actor<move_state>*;

struct move_tiers {
  tier_actor host;
  tier_handle below;
  tier_handle top; ///< faster than host memory; may be none
};

move_tiers tiers_of(const move_job& job) {
  move_tiers all{job.group->host, {}, {}};
  for (const tier_handle& tier : job.group->tiers())
    if (tier.kind == job.to)
      all.below = tier;
    else if (tier.returns && tier.reads())
      all.top = tier;
  return all;
}

object_bitmap either(const object_bitmap& one, const object_bitmap& other) {
  object_bitmap both = one;
  for (size_t i = 0; i < both.size(); ++i)
    if (other.test(i))
      both.set(i);
  return both;
}

/// What the tier has of the part; nothing, if there is no such tier.
task<result<probe_answer>> look(move_pointer self, const tier_actor& tier, const batch_ptr& part, bool hold) {
  if (!tier) {
    probe_answer none;
    none.present = object_bitmap(part->size());
    co_return none;
  }
  probe_request wanted{part, hold, false};
  auto found = co_await ask<probe_answer>(self, tier, std::move(wanted), "tier of a move");
  co_return found;
}

/// Those that only the faster tier has. Null: none.
hold_ptr only_at_top(const probe_answer& top, const probe_answer& host, const probe_answer& below) {
  if (!top.held)
    return nullptr;
  auto places = top.held->places();
  bool any = false;
  for (size_t i = 0; i < places.size(); ++i) {
    if (host.present.test(i) || below.present.test(i))
      places[i] = {};
    any = any || places[i].present();
  }
  return any ? part_of(top.held, std::move(places)) : nullptr;
}

/// The objects go where the write-through brings them. Returns what arrived in host memory, held.
task<hold_ptr> bring_by(move_pointer self, const write_through_actor& writes, demote_request request) {
  auto done = co_await ask<demote_answer>(self, writes, std::move(request), "write-through of a tier");
  co_return done ? done->arrived : nullptr; // if it has ended, nothing was brought
}

/// What host memory has of the part goes down from there.
task<> write_down(move_pointer self, const move_job& job, const tier_handle& below, const move_plan& plan,
                  const batch_ptr& part, const hold_ptr& held) {
  if (!below.write_through || !held) // nothing came to host memory
    co_return;
  if (!plan.writes()) { // who has just written it may still be about to end its hold in host memory
    check_writes_request turn;
    co_await ask<check_writes_answer>(self, below.write_through, std::move(turn), "write-through of a tier");
    co_return;
  }
  demote_request request{job.space, part, held, demotion_turn::in_turn};
  co_await bring_by(self, below.write_through, std::move(request));
}

void leave(move_pointer self, const move_job& job, const tier_actor& tier, std::vector<object_id> ids) {
  if (!ids.empty() && !job.stays)
    self->send(tier, discard_notice{std::move(ids), discard_reason::moved});
}

/// 1. What only the faster tier has comes to host memory. 2. What host memory has is written down. 3. What is below leaves the
/// tiers above, unless it is to stay or somebody else holds it as well.
task<error> move_part(move_pointer self, const move_job& job, const move_tiers& tiers, move_plan& plan,
                      const batch_ptr& part) {
  auto top = co_await look(self, tiers.top.tier, part, true);
  if (!top)
    co_return top.error();
  auto host = co_await look(self, tiers.host, part, false);
  if (!host)
    co_return host.error();
  auto below = co_await look(self, tiers.below.tier, part, false);
  if (!below)
    co_return below.error();
  auto above = either(top->present, host->present);
  hold_ptr arrived; // until it is held
  if (hold_ptr only = only_at_top(*top, *host, *below)) {
    demote_request request{job.space, part, std::move(only)};
    arrived = co_await bring_by(self, tiers.top.returns, std::move(request));
  }

  host = co_await look(self, tiers.host, part, true);
  if (!host)
    co_return host.error();
  arrived = nullptr;
  below = co_await look(self, tiers.below.tier, part, false);
  if (!below)
    co_return below.error();
  plan.found(either(above, host->present), below->present);
  co_await write_down(self, job, tiers.below, plan, part, host->held);

  below = co_await look(self, tiers.below.tier, part, false);
  if (!below)
    co_return below.error();
  leave(self, job, tiers.host, plan.written(below->present, host->held.get()));
  leave(self, job, tiers.top.tier, plan.written(below->present, top->held.get()));
  auto host_left = co_await look(self, tiers.host, part, false); // which it reads behind the notice
  if (!host_left)
    co_return host_left.error();
  auto top_left = co_await look(self, tiers.top.tier, part, false);
  if (!top_left)
    co_return top_left.error();
  plan.left(either(host_left->present, top_left->present));
  co_return error{};
}

task<error> move_all(move_pointer self, const move_job& job, move_plan& plan) {
  const auto tiers = tiers_of(job);
  while (true) {
    if (auto ended = why_ended(job.context, "move"); ended.code != errc::ok)
      co_return ended;
    const batch_ptr part = plan.next();
    if (!part)
      co_return error{};
    auto failure = co_await move_part(self, job, tiers, plan, part);
    if (failure.code != errc::ok)
      co_return failure;
  }
}

task<> run_move(move_pointer self, move_job job, answer<move_result> reply) {
  move_plan plan(job.space, job.chunks, job.before, job.group->window_bytes.load());
  auto failure = co_await move_all(self, job, plan);
  reply.deliver({std::move(failure), plan.sum()});
  self->quit();
}

caf::behavior move_behavior(move_pointer self) {
  return {
      [self](const move_job& job) {
        assert(!self->state.progress.in_progress()); // one request
        auto reply = make_answer<move_result>(self);
        auto promise = reply.promise();
        self->state.progress = run_move(self, job, std::move(reply));
        self->state.progress.start();
        return promise;
      },
  };
}

} // namespace

caf::actor spawn_move(caf::actor_system& system) { return system.spawn(move_behavior); }

} // namespace terrace::actors
