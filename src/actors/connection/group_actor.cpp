#include "actors/connection/group_actor.hpp"

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

group_actor::behavior_type group_behavior(group_pointer self, const space_registry::options& spaces,
                                          const std::shared_ptr<edge_credit>& notices,
                                          const std::weak_ptr<const group_parts>& group,
                                          const session_bounds& sessions,
                                          const std::shared_ptr<metrics::client_probe>& probe) {
  group_book& book = self->state.book.emplace(spaces, notices, sessions, probe);
  self->state.group = group;
  return {
      [self](const open_space_request& request) { return on_open_space(self, request); },
      [&book](const idle_spaces_request& request) { return book.answer(request); },
      [self](const forget_spaces_request& request) { return on_forget_spaces(self, request); },
      [&book](const reserve_spaces_request& request) { return book.answer(request); },
      [&book](const add_lease_notice& notice) { book.take(notice); },
      [&book](const use_lease_request& request) { return book.answer(request); },
      [&book](const mark_revoked_request& request) { return book.answer(request); },
      [&book](const leases_request& request) { return book.answer(request); },
      [&book](const pin_request& request) { return book.answer(request); },
      [&book](const unpin_request& request) { return book.answer(request); },
      [&book](const end_lease_notice& notice) { book.take(notice); },
      [&book](const end_owner_notice& notice) { book.take(notice); },
      [&book](const begin_lookup_request& request) { return book.answer(request); },
      [&book](const finish_lookup_notice& notice) { book.take(notice); },
      [self](const await_lookup_request& request) { return on_await_lookup(self, request); },
      [&book](const cancel_lookup_request& request) { return book.answer(request); },
      [&book](const open_session_request& request) { return book.answer(request); },
      [&book](const use_session_request& request) { return book.answer(request); },
      [&book](const save_session_request& request) { return book.answer(request); },
      [&book](const close_session_request& request) { return book.answer(request); },
      [&book](const sessions_request& request) { return book.answer(request); },
      [&book](const sweep_notice&) { book.sweep(); },
      [&book](const group_status_request& request) { return book.answer(request); },
  };
}

} // namespace

group_actor spawn_group(caf::actor_system& system, const space_registry::options& spaces,
                        std::shared_ptr<edge_credit> notices, std::weak_ptr<const group_parts> group,
                        const session_bounds& sessions, std::shared_ptr<metrics::client_probe> probe) {
  return system.spawn(group_behavior, spaces, std::move(notices), std::move(group), sessions,
                      std::move(probe));
}

} // namespace terrace::actors
