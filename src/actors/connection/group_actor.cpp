#include "actors/connection/group_actor.hpp"

#include "actors/transfer/transfer_arguments.hpp"
#include "connection/lease_registry.hpp"
#include "coroutine/answer.hpp"
#include "index/space_registry.hpp"
#include "protocol/limits.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cassert>

namespace terrace::actors {

namespace {

struct group_state {
  const char* name = "group";
  space_registry spaces;
  lease_registry leases;
  lookup_registry lookups;
  std::shared_ptr<edge_credit> notices;
  std::weak_ptr<const group_parts> group; ///< whose tiers learn what is forgotten
};

using self_pointer = group_actor::stateful_pointer<group_state>;

open_space_answer on_open_space(group_state& state, const open_space_request& request) {
  open_space_answer answer;
  auto opened = state.spaces.open(request.spec);
  if (opened)
    answer.opened = std::move(*opened);
  else
    answer.failure = opened.error();
  return answer;
}

/// The tiers are notified here: the connection that asks may end before it is answered.
forget_spaces_answer on_forget_spaces(self_pointer self, const forget_spaces_request& request) {
  assert(request.empty.size() <= empty_spaces_request::spaces_max);
  forget_spaces_answer answer{{}, self->state.spaces.forget(request.empty)};
  if (auto group = self->state.group.lock(); group && !answer.forgotten.empty())
    for (const tier_parts& tier : group->tiers())
      self->send(tier.tier, forget_spaces_notice{answer.forgotten});
  return answer;
}

reserve_spaces_answer on_reserve_spaces(group_state& state, const reserve_spaces_request& request) {
  reserve_spaces_answer answer;
  for (const digest& fingerprint : request.fingerprints)
    answer.ids.push_back(state.spaces.reserve(fingerprint).value_or(space_id{}));
  return answer;
}

use_lease_answer on_use_lease(group_state& state, const use_lease_request& request) {
  use_lease_answer answer;
  answer.found = state.leases.find(request.id);
  if (!answer.found)
    answer.failure = {errc::gone, "no such lease in this trust group: it was released, or its owner ended"};
  return answer;
}

begin_lookup_answer on_begin_lookup(group_state& state, const begin_lookup_request& request) {
  begin_lookup_answer answer;
  if (auto begun = state.lookups.begin(request.id, request.context); !begun)
    answer.failure = begun.error();
  return answer;
}

caf::result<await_lookup_answer> on_await_lookup(self_pointer self, const await_lookup_request& request) {
  auto reply = make_answer<await_lookup_answer>(self);
  auto promise = reply.promise();
  self->state.lookups.await(request.id, request.context,
                            [reply](const error& failure, const lookup_outcome_ptr& found) mutable {
                              reply.deliver({failure, found});
                            });
  return promise;
}

group_report on_status(const group_state& state) {
  group_report report;
  report.spaces = state.spaces.size();
  report.leases = state.leases.size();
  report.open_spaces = state.spaces.list(protocol::status_spaces_max);
  return report;
}

group_actor::behavior_type group_behavior(self_pointer self, const space_registry::options& spaces,
                                          const std::shared_ptr<edge_credit>& notices,
                                          const std::weak_ptr<const group_parts>& group) {
  group_state& state = self->state;
  state.spaces = space_registry(spaces);
  state.notices = notices;
  state.group = group;
  return {
      [&state](const open_space_request& request) { return on_open_space(state, request); },
      [&state](const idle_spaces_request&) {
        return idle_spaces_answer{
            {}, state.spaces.idle(empty_spaces_request::spaces_max), state.spaces.known()};
      },
      [self](const forget_spaces_request& request) { return on_forget_spaces(self, request); },
      [&state](const reserve_spaces_request& request) { return on_reserve_spaces(state, request); },
      [&state](const add_lease_notice& notice) {
        state.leases.add(notice.id, notice.owner, notice.added);
        state.notices->heard(1);
      },
      [&state](const use_lease_request& request) { return on_use_lease(state, request); },
      [&state](const end_lease_notice& notice) {
        state.leases.end(notice.id, notice.owner);
        state.notices->heard(1);
      },
      [&state](const end_owner_notice& notice) { state.leases.end(notice.owner); },
      [&state](const begin_lookup_request& request) { return on_begin_lookup(state, request); },
      [&state](const finish_lookup_notice& notice) {
        state.lookups.finish(notice.id, notice.context, notice.outcome);
      },
      [self](const await_lookup_request& request) { return on_await_lookup(self, request); },
      [&state](const cancel_lookup_request& request) {
        return cancel_lookup_answer{{}, state.lookups.cancel(request.id)};
      },
      [&state](const sweep_notice&) { state.lookups.sweep(); },
      [&state](const group_status_request&) { return on_status(state); },
  };
}

} // namespace

group_actor spawn_group(caf::actor_system& system, const space_registry::options& spaces,
                        std::shared_ptr<edge_credit> notices, std::weak_ptr<const group_parts> group) {
  return system.spawn(group_behavior, spaces, std::move(notices), std::move(group));
}

} // namespace terrace::actors
