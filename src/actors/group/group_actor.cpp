#include "actors/group/group_actor.hpp"

#include "actors/group/trust_group.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "base/tier_properties.hpp"
#include "group/group_state.hpp"
#include "group/session_table.hpp"
#include "runtime/answer.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_source.hpp"
#include "tier/objects/tier_clear.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>

namespace terrace::actors {

namespace {

struct group_actor_state {
  const char* name = "group";
  std::optional<group_state> shared;
  active_sessions<session_actor> active{0};
  std::weak_ptr<const trust_group> group; ///< its tiers learn which spaces are forgotten
  bool demoting = false;                  ///< chunks that a session gave up are being demoted
  bool removing = false;                  ///< a tail without references is being removed
  uint64_t changes = 0;                   ///< changes of sessions since the last part of a check

  ~group_actor_state() { // they know the group, and it knows them
    for (const auto& [id, one] : active)
      caf::anon_send_exit(one.actor, caf::exit_reason::user_shutdown);
  }
};

using group_pointer = group_actor::stateful_pointer<group_actor_state>;

/// Notifies the tiers itself, because the connection that asks may end before it is answered.
forget_spaces_answer on_forget_spaces(group_pointer self, const forget_spaces_request& request) {
  assert(request.empty.size() <= empty_spaces_request::spaces_max);
  forget_spaces_answer answer{{}, self->state.shared->spaces().forget(request.empty)};
  assert(answer.forgotten.size() <= request.empty.size());
  auto group = self->state.group.lock();
  if (group && !answer.forgotten.empty()) {
    group->tenants->forgotten(answer.forgotten);
    group->events->forgotten(answer.forgotten);
  }
  if (group && !answer.forgotten.empty())
    for (const tier_handle& tier : group->tiers())
      self->send(tier.tier, forget_spaces_notice{answer.forgotten});
  return answer;
}

/// Registers the tenant of the space before a tier can ask for it: a tier asks when a request uses the space.
open_space_answer on_open_space(group_pointer self, const open_space_request& request) {
  auto& spaces = self->state.shared->spaces();
  auto opened = request.known != space_id{} ? spaces.open(request.known) : spaces.open(request.spec);
  if (!opened)
    return {opened.error(), nullptr};
  if (auto group = self->state.group.lock()) {
    group->tenants->opened((*opened)->id, (*opened)->spec.salt);
    group->events->opened((*opened)->id, (*opened)->spec);
  }
  return {{}, std::move(*opened)};
}

caf::result<await_lookup_answer> on_await_lookup(group_pointer self, const await_lookup_request& request) {
  auto reply = make_answer<await_lookup_answer>(self);
  auto promise = reply.promise();
  auto told = [reply](const error& failure, const lookup_outcome_ptr& found) mutable {
    reply.deliver({failure, found});
  };
  self->state.shared->lookups().await(request.id, request.context, told);
  return promise;
}

// ---- what sessions hold ----

void demote_next(group_pointer self);

const tier_handle* tier_below(const trust_group& group) {
  for (const tier_handle& tier : group.tiers())
    if (slower_than_memory(tier.kind) && tier.write_through && tier.writes())
      return &tier;
  return nullptr;
}

void demoted(group_pointer self, bool below) {
  self->state.shared->demoted(below);
  self->state.demoting = false;
  demote_next(self);
}

/// Demotes one after the other. Waiting chunks can be evicted in the meantime.
void demote_next(group_pointer self) {
  auto& state = self->state;
  auto group = state.group.lock();
  while (!state.demoting) {
    demoted_chunks next = state.shared->next_demotion();
    if (!next.chunks)
      return;
    const tier_handle* below = group ? tier_below(*group) : nullptr;
    if (below == nullptr) {
      state.shared->demoted(false);
      continue;
    }
    state.demoting = true;
    auto work = std::make_shared<request_context>();
    work->work.begin();
    work->group = group->number;
    move_job job{group, below->kind, next.space, next.chunks, next.before, std::move(work), true};
    self->request(spawn_move(self->system()), caf::infinite, std::move(job))
        .then(
            [self](const move_result& done) {
              demoted(self, done.failure.code == errc::ok && done.sum.failed.chunks == 0);
            },
            [self](const caf::error&) { demoted(self, false); });
  }
}

// ---- tails to which nobody refers any more ----

/// Removes one tail at a time: some objects at a time, from one tier after the other, in the order of a clear. A tier is asked
/// in the turn that finds the tail still without references. Whoever refers to it later asks the tiers later, and finds it
/// gone.
struct tail_removal {
  unreferred_tail what;
  object_source objects;
  size_t next = 0; ///< number of the next object
  clear_order order{};
  context_ptr work; ///< a check counts it as in progress
};
using tail_removal_ptr = std::shared_ptr<tail_removal>;
constexpr size_t removed_at_a_time = 256; ///< objects per message

void remove_next_tail(group_pointer self);

void end_removal(group_pointer self) {
  self->state.removing = false;
  remove_next_tail(self);
}

void remove_some(group_pointer self, const tail_removal_ptr& all) {
  auto group = self->state.group.lock();
  while (group && all->next < all->objects.size()) {
    auto position = all->order.next(group->tiers().size());
    if (!position) {
      all->next += removed_at_a_time;
      all->order = {};
      continue;
    }
    if (self->state.shared->tails().referred(all->what.space->id, all->what.key))
      return end_removal(self);
    remove_request wanted{.objects = all->objects.cut(all->next, removed_at_a_time).objects,
                          .why = discard_reason::unwanted,
                          .in_progress = all->order.in_progress(*position)};
    // Probes may overtake other messages.
    self->request<caf::message_priority::high>(group->tiers()[*position].tier, caf::infinite,
                                               std::move(wanted))
        .then([self, all](const remove_answer&) { remove_some(self, all); },
              [self](const caf::error&) { end_removal(self); });
    return;
  }
  if (group)
    self->state.shared->tail_removed();
  end_removal(self);
}

void remove_next_tail(group_pointer self) {
  auto& state = self->state;
  if (state.removing)
    return;
  auto group = state.group.lock();
  unreferred_tail next = state.shared->tails().next_unreferred();
  if (!next.space || !group)
    return;
  state.removing = true;
  auto chunks = std::make_shared<const std::vector<digest>>(1, next.key);
  auto all = std::make_shared<tail_removal>(tail_removal{next, {next.space, chunks}, 0, {}, {}});
  all->work = std::make_shared<request_context>();
  all->work->work.begin();
  remove_some(self, all);
}

/// In builds that check all the time, recounts some sessions now and then after a change. A difference ends
/// the process.
void check_some_sessions(group_pointer self) {
  constexpr uint64_t check_every = TERRACE_CHECK_EVERY;
  if constexpr (check_every != 0) {
    auto& state = self->state;
    auto group = state.group.lock();
    if (++state.changes < check_every || (group && group->checking->load()))
      return;
    state.changes = 0;
    auto found = state.shared->answer(check_sessions_request{false});
    if (!found.more)
      state.shared->answer(check_sessions_request{true});
    if (found.differences.empty())
      return;
    std::fprintf(stderr, "terraced: a check of the sessions found that %s\n",
                 found.differences.front().c_str());
    std::abort();
  }
}

void settle_holds(group_pointer self);

/// Calls `then` when the session has no actor; at once if it has none. One that has an actor is parked: it gives
/// back what it owns, and its next turn spawns another actor.
void with_parked(group_pointer self, const session_id& id, std::function<void()> then) {
  const session_actor* known = self->state.active.find(id);
  if (known == nullptr) {
    then();
    return;
  }
  self->request(*known, caf::infinite, park_session_request{})
      .then(
          [self, id, then](park_session_answer& parked) {
            self->state.active.erase(id);
            self->state.shared->park(id, std::move(parked.turns));
            then();
            settle_holds(self);
          },
          [self, id, then, actor = *known](const caf::error&) {
            // Another request has parked it, or it has ended with what it owned.
            if (const session_actor* now = self->state.active.find(id); now != nullptr && *now == actor) {
              self->state.active.erase(id);
              self->state.shared->lost(id);
              settle_holds(self);
            }
            with_parked(self, id, then);
          });
}

/// Call after anything that may have ended holds of sessions. The holds end here, or on another thread if
/// they are many.
void settle_holds(group_pointer self) {
  constexpr size_t few = 8;
  auto ended = self->state.shared->take_ended();
  for (const session_id& id : ended.actors)
    with_parked(self, id, [] {});
  auto group = self->state.group.lock();
  if (ended.holds.size() > few && group && group->lease_ends)
    group->lease_ends->destroy(std::move(ended.holds));
  else
    ended.holds.clear();
  demote_next(self);
  remove_next_tail(self);
  check_some_sessions(self);
}

template <class Request>
auto change_sessions(group_pointer self, const Request& request) {
  auto answer = self->state.shared->answer(request);
  settle_holds(self);
  return answer;
}

void on_end_owner(group_pointer self, const end_owner_notice& notice) {
  self->state.shared->apply(notice);
  settle_holds(self);
}

// ---- sessions that have an actor ----

void park_excess(group_pointer self);

find_session_answer on_find_session(group_pointer self, const find_session_request& request) {
  auto& state = self->state;
  const session_id& id = request.id;
  if (auto gone = state.shared->find_session(id); gone.code != errc::ok)
    return {gone, {}};
  if (const session_actor* known = state.active.find(id)) {
    state.active.touch(id);
    if (*known != request.ended)
      return {{}, *known};
    // One that is parked gives its session back before it ends.
    state.active.erase(id);
    state.shared->lost(id);
    settle_holds(self);
    return {state.shared->find_session(id), {}};
  }
  auto actor = spawn_session(self->system(), self, id, state.shared->take_session(id));
  state.active.add(id, actor);
  park_excess(self);
  return {{}, actor};
}

use_session_answer on_session_used(group_pointer self, const session_used& report) {
  self->state.active.touch(report.id);
  return self->state.shared->answer(report);
}

/// Colder sessions give up what they hold, and then `done` is called. Those that have an actor are parked first.
void evict_coldest(group_pointer self, const std::shared_ptr<group_state::cooling>& colder,
                   std::function<void()> done) {
  auto first = self->state.shared->evict_coldest(*colder);
  if (!first) {
    done();
    settle_holds(self);
    return;
  }
  with_parked(self, *first, [self, colder, done = std::move(done)] { evict_coldest(self, colder, done); });
}

/// Answers when colder sessions have given up enough.
template <class Answer>
caf::result<Answer> after_cooling(group_pointer self, const group_state::cooling& colder,
                                  std::function<Answer(const group_state::cooling&)> made) {
  auto reply = make_answer<Answer>(self);
  auto promise = reply.promise();
  auto kept = std::make_shared<group_state::cooling>(colder);
  evict_coldest(self, kept, [reply, kept, made = std::move(made)]() mutable { reply.deliver(made(*kept)); });
  return promise;
}

caf::result<save_session_answer> on_session_saved(group_pointer self, session_saved& report) {
  self->state.active.touch(report.id);
  group_state::cooling colder;
  auto saved = self->state.shared->answer(report, colder);
  if (report.with_end)
    return after_cooling<save_session_answer>(self, colder, [saved](const auto&) { return saved; });
  settle_holds(self);
  return saved;
}

caf::result<yield_holds_answer> on_yield_holds(group_pointer self, const yield_holds_request& request) {
  group_state::cooling colder{.warm = request.session, .wanted = request.bytes};
  return after_cooling<yield_holds_answer>(self, colder, [](const group_state::cooling& done) {
    return yield_holds_answer{{}, done.freed};
  });
}

/// Answers a request that ends what the session holds.
template <class Answer, class Request>
caf::result<Answer> change_parked(group_pointer self, const session_id& id, const Request& request) {
  if (self->state.active.find(id) == nullptr)
    return change_sessions(self, request);
  auto reply = make_answer<Answer>(self);
  auto promise = reply.promise();
  with_parked(self, id, [self, reply, request]() mutable { reply.deliver(change_sessions(self, request)); });
  return promise;
}

caf::result<mark_revoked_answer> on_mark_revoked(group_pointer self, const mark_revoked_request& request) {
  auto holder = self->state.shared->holder(request.id);
  return change_parked<mark_revoked_answer>(self, holder.value_or(session_id{}), request);
}

void park_excess(group_pointer self) {
  while (auto coldest = self->state.active.excess())
    with_parked(self, *coldest, [] {});
}

group_actor::behavior_type group_behavior(group_pointer self, const space_registry::options& most,
                                          const std::shared_ptr<credit_gate>& notices,
                                          const std::weak_ptr<const trust_group>& group,
                                          const session_bounds& sessions,
                                          const std::shared_ptr<metrics::client_probe>& probe,
                                          const account_ptr& held, const prompt_bounds& prompts) {
  group_state& shared = self->state.shared.emplace(most, notices, sessions, probe, held, prompts);
  space_registry& spaces = shared.spaces();
  lookup_registry& lookups = shared.lookups();
  self->state.active = active_sessions<session_actor>(sessions.active_max);
  self->state.group = group;
  return {
      [self](const open_space_request& request) { return on_open_space(self, request); },
      [&spaces](const idle_spaces_request&) {
        return idle_spaces_answer{{}, spaces.idle(empty_spaces_request::spaces_max), spaces.known()};
      },
      [self](const forget_spaces_request& request) { return on_forget_spaces(self, request); },
      [&spaces](const reserve_spaces_request& request) { return reserve(spaces, request); },
      [&shared](const add_lease_notice& notice) { shared.apply(notice); },
      [&shared](const use_lease_request& request) { return use(shared.leases(), request); },
      [self](const mark_revoked_request& request) { return on_mark_revoked(self, request); },
      [&shared](const leases_request& request) {
        return leases_answer{
            {}, shared.leases().size(), shared.leases().list(request.after, request.count_max)};
      },
      [&shared](const pin_request& request) { return shared.answer(request); },
      [&shared](const unpin_request& request) { return shared.answer(request); },
      [&shared](const end_lease_notice& notice) { shared.apply(notice); },
      [self](const end_owner_notice& notice) { on_end_owner(self, notice); },
      [&lookups](const begin_lookup_request& request) { return begin(lookups, request); },
      [&lookups](const finish_lookup_notice& notice) {
        lookups.finish(notice.id, notice.context, notice.outcome);
      },
      [self](const await_lookup_request& request) { return on_await_lookup(self, request); },
      [&lookups](const cancel_lookup_request& request) {
        return cancel_lookup_answer{{}, lookups.cancel(request.id)};
      },
      [self](const open_session_request& request) { return change_sessions(self, request); },
      [self](const find_session_request& request) { return on_find_session(self, request); },
      [self](const yield_holds_request& request) { return on_yield_holds(self, request); },
      [self](const close_session_request& request) {
        return change_parked<close_session_answer>(self, request.id, request);
      },
      [self](const session_used& report) { return on_session_used(self, report); },
      [self](session_saved& report) { return on_session_saved(self, report); },
      [&shared](const sessions_request& request) { return shared.answer(request); },
      [self](const refer_tail_request& request) { return change_sessions(self, request); },
      [self](const save_prompt_request& request) { return change_sessions(self, request); },
      [&shared](const find_prompt_request& request) {
        return find_prompt_answer{{}, shared.prompts().find(request.space, request.key)};
      },
      [self](const forget_prompts_request& request) { return change_sessions(self, request); },
      [&shared](const check_group_request& request) { return check_leases(shared, request); },
      [&shared](const check_sessions_request& request) { return shared.answer(request); },
      [&shared](const check_owner_request& request) { return check_owner(shared, request); },
      [&lookups](const sweep_notice&) { lookups.sweep(); },
      [&shared](const group_status_request&) { return report_of(shared); },
  };
}

} // namespace

group_actor spawn_group(caf::actor_system& system, const space_registry::options& spaces,
                        std::shared_ptr<credit_gate> notices, std::weak_ptr<const trust_group> group,
                        const session_bounds& sessions, std::shared_ptr<metrics::client_probe> probe,
                        account_ptr held, const prompt_bounds& prompts) {
  return system.spawn(group_behavior, spaces, std::move(notices), std::move(group), sessions,
                      std::move(probe), std::move(held), prompts);
}

} // namespace terrace::actors
