#include "actors/connection/group_actor.hpp"

#include "connection/lease_registry.hpp"
#include "coroutine/answer.hpp"
#include "index/space_registry.hpp"
#include "protocol/limits.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace terrace::actors {

namespace {

struct group_state {
  const char* name = "group";
  space_registry spaces;
  lease_registry leases;
  lookup_registry lookups;
  std::shared_ptr<edge_credit> notices;
};

open_space_answer open_space(group_state& state, const open_space_request& request) {
  open_space_answer answer;
  auto opened = state.spaces.open(request.spec);
  if (opened)
    answer.opened = std::move(*opened);
  else
    answer.failure = opened.error();
  return answer;
}

caf::result<await_lookup_answer> await_lookup(group_actor::stateful_pointer<group_state> self,
                                              const await_lookup_request& request) {
  auto reply = make_answer<await_lookup_answer>(self);
  auto promise = reply.promise();
  self->state.lookups.await(request.id, request.context,
                            [reply](const error& failure, const lookup_outcome_ptr& found) mutable {
                              reply.deliver({failure, found});
                            });
  return promise;
}

group_actor::behavior_type group_behavior(group_actor::stateful_pointer<group_state> self,
                                          const space_registry::options& spaces,
                                          const std::shared_ptr<edge_credit>& notices) {
  self->state.spaces = space_registry(spaces);
  self->state.notices = notices;
  return {
      [self](const open_space_request& request) { return open_space(self->state, request); },
      [self](const idle_spaces_request&) {
        auto& known = self->state.spaces;
        return idle_spaces_answer{{}, known.idle(empty_spaces_request::spaces_max), known.known()};
      },
      [self](const forget_spaces_request& request) {
        return forget_spaces_answer{{}, self->state.spaces.forget(request.empty)};
      },
      [self](const reserve_spaces_request& request) {
        reserve_spaces_answer answer;
        for (const digest& fingerprint : request.fingerprints)
          answer.ids.push_back(self->state.spaces.reserve(fingerprint).value_or(space_id{}));
        return answer;
      },
      [self](const add_lease_notice& notice) {
        self->state.leases.add(notice.id, notice.owner, notice.added);
        self->state.notices->heard(1);
      },
      [self](const use_lease_request& request) {
        use_lease_answer answer;
        answer.found = self->state.leases.find(request.id);
        if (!answer.found)
          answer.failure = {errc::gone,
                            "no such lease in this trust group: it was released, or its owner ended"};
        return answer;
      },
      [self](const end_lease_notice& notice) {
        self->state.leases.end(notice.id, notice.owner);
        self->state.notices->heard(1);
      },
      [self](const end_owner_notice& notice) { self->state.leases.end(notice.owner); },
      [self](const begin_lookup_request& request) {
        begin_lookup_answer answer;
        if (auto begun = self->state.lookups.begin(request.id, request.context); !begun)
          answer.failure = begun.error();
        return answer;
      },
      [self](const finish_lookup_notice& notice) {
        self->state.lookups.finish(notice.id, notice.context, notice.outcome);
      },
      [self](const await_lookup_request& request) { return await_lookup(self, request); },
      [self](const cancel_lookup_request& request) {
        return cancel_lookup_answer{{}, self->state.lookups.cancel(request.id)};
      },
      [self](const sweep_notice&) { self->state.lookups.sweep(); },
      [self](const group_status_request&) {
        group_report report;
        report.spaces = self->state.spaces.size();
        report.leases = self->state.leases.size();
        report.open_spaces = self->state.spaces.list(protocol::status_spaces_max);
        return report;
      },
  };
}

} // namespace

group_actor spawn_group(caf::actor_system& system, const space_registry::options& spaces,
                        std::shared_ptr<edge_credit> notices) {
  return system.spawn(group_behavior, spaces, std::move(notices));
}

} // namespace terrace::actors
