#include "actors/connection/group_actor.hpp"

#include "actors/transfer/move_actor.hpp"
#include "actors/transfer/transfer_arguments.hpp"
#include "connection/group_book.hpp"
#include "coroutine/answer.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cassert>
#include <optional>

namespace terrace::actors {

namespace {

struct group_state {
  const char* name = "group";
  std::optional<group_book> book;
  std::weak_ptr<const group_parts> group; ///< whose tiers learn what is forgotten
  bool demoting = false;                  ///< what a session gave up
};

using group_pointer = group_actor::stateful_pointer<group_state>;

/// The tiers are notified here: the connection that asks may end before it is answered.
forget_spaces_answer on_forget_spaces(group_pointer self, const forget_spaces_request& request) {
  assert(request.empty.size() <= empty_spaces_request::spaces_max);
  auto answer = self->state.book->answer(request);
  assert(answer.forgotten.size() <= request.empty.size());
  auto group = self->state.group.lock();
  if (group && !answer.forgotten.empty())
    group->tenants->forgotten(answer.forgotten);
  if (group && !answer.forgotten.empty())
    for (const tier_parts& tier : group->tiers())
      self->send(tier.tier, forget_spaces_notice{answer.forgotten});
  return answer;
}

/// The tiers ask for the tenant of a space when a request uses it, which is after this.
open_space_answer on_open_space(group_pointer self, const open_space_request& request) {
  auto answer = self->state.book->answer(request);
  if (auto group = self->state.group.lock(); group && answer.opened)
    group->tenants->opened(answer.opened->id, request.spec.salt);
  return answer;
}

caf::result<await_lookup_answer> on_await_lookup(group_pointer self, const await_lookup_request& request) {
  auto reply = make_answer<await_lookup_answer>(self);
  auto promise = reply.promise();
  self->state.book->await(request,
                          [reply](await_lookup_answer found) mutable { reply.deliver(std::move(found)); });
  return promise;
}

// ---- what sessions hold ----

void demote_next(group_pointer self);

const tier_parts* tier_below(const group_parts& group) {
  for (const tier_parts& tier : group.tiers())
    if (tier.write_through && tier.writes())
      return &tier;
  return nullptr;
}

void demoted(group_pointer self, bool below) {
  self->state.book->demoted(below);
  self->state.demoting = false;
  demote_next(self);
}

/// One after the other: what waits can be evicted in the meantime.
void demote_next(group_pointer self) {
  auto& state = self->state;
  auto group = state.group.lock();
  while (!state.demoting) {
    demoted_chunks next = state.book->next_demotion();
    if (!next.chunks)
      return;
    const tier_parts* below = group ? tier_below(*group) : nullptr;
    if (below == nullptr) {
      state.book->demoted(false);
      continue;
    }
    state.demoting = true;
    auto work = std::make_shared<request_context>();
    work->group = group->number;
    move_job job{group, below->kind, next.in, next.chunks, next.before, std::move(work), true};
    self->request(spawn_move(self->system()), caf::infinite, std::move(job))
        .then(
            [self](const move_result& done) {
              demoted(self, done.failure.code == errc::ok && done.sum.failed.chunks == 0);
            },
            [self](const caf::error&) { demoted(self, false); });
  }
}

/// After what may have ended holds of sessions: they end, on another thread if they are many.
void settle_holds(group_pointer self) {
  constexpr size_t few = 8;
  auto ended = self->state.book->take_ended_holds();
  auto group = self->state.group.lock();
  if (ended.size() > few && group && group->lease_ends)
    group->lease_ends->destroy(std::move(ended));
  else
    ended.clear();
  demote_next(self);
}

template <class Request>
auto change_sessions(group_pointer self, const Request& request) {
  auto answer = self->state.book->answer(request);
  settle_holds(self);
  return answer;
}

void on_end_owner(group_pointer self, const end_owner_notice& notice) {
  self->state.book->take(notice);
  settle_holds(self);
}

group_actor::behavior_type group_behavior(group_pointer self, const space_registry::options& spaces,
                                          const std::shared_ptr<edge_credit>& notices,
                                          const std::weak_ptr<const group_parts>& group,
                                          const session_bounds& sessions,
                                          const std::shared_ptr<metrics::client_probe>& probe,
                                          const account_ptr& held) {
  group_book& book = self->state.book.emplace(spaces, notices, sessions, probe, held);
  self->state.group = group;
  return {
      [self](const open_space_request& request) { return on_open_space(self, request); },
      [&book](const idle_spaces_request& request) { return book.answer(request); },
      [self](const forget_spaces_request& request) { return on_forget_spaces(self, request); },
      [&book](const reserve_spaces_request& request) { return book.answer(request); },
      [&book](const add_lease_notice& notice) { book.take(notice); },
      [&book](const use_lease_request& request) { return book.answer(request); },
      [self](const mark_revoked_request& request) { return change_sessions(self, request); },
      [&book](const leases_request& request) { return book.answer(request); },
      [&book](const pin_request& request) { return book.answer(request); },
      [&book](const unpin_request& request) { return book.answer(request); },
      [&book](const end_lease_notice& notice) { book.take(notice); },
      [self](const end_owner_notice& notice) { on_end_owner(self, notice); },
      [&book](const begin_lookup_request& request) { return book.answer(request); },
      [&book](const finish_lookup_notice& notice) { book.take(notice); },
      [self](const await_lookup_request& request) { return on_await_lookup(self, request); },
      [&book](const cancel_lookup_request& request) { return book.answer(request); },
      [self](const open_session_request& request) { return change_sessions(self, request); },
      [&book](const use_session_request& request) { return book.answer(request); },
      [self](const save_session_request& request) { return change_sessions(self, request); },
      [self](const yield_holds_request& request) { return change_sessions(self, request); },
      [self](const close_session_request& request) { return change_sessions(self, request); },
      [&book](const sessions_request& request) { return book.answer(request); },
      [&book](const sweep_notice&) { book.sweep(); },
      [&book](const group_status_request& request) { return book.answer(request); },
  };
}

} // namespace

group_actor spawn_group(caf::actor_system& system, const space_registry::options& spaces,
                        std::shared_ptr<edge_credit> notices, std::weak_ptr<const group_parts> group,
                        const session_bounds& sessions, std::shared_ptr<metrics::client_probe> probe,
                        account_ptr held) {
  return system.spawn(group_behavior, spaces, std::move(notices), std::move(group), sessions,
                      std::move(probe), std::move(held));
}

} // namespace terrace::actors
