#include "actors/group/group_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace terrace::actors {

namespace {

struct session_actor_state {
  const char* name = "session";
  group_actor group;
  session_id id;
  std::optional<session> own;
};

using session_pointer = session_actor::stateful_pointer<session_actor_state>;

/// The group has the report before anybody has the answer.
auto on_use(session_pointer self, const use_session_request& request) {
  auto report = self->state.own->use(request.tokens);
  report.id = self->state.id;
  return self->delegate(self->state.group, std::move(report));
}

caf::result<save_session_answer> on_save(session_pointer self, save_session_request& request) {
  auto report = self->state.own->save(std::move(request));
  if (!report)
    return save_session_answer{{}, turn_outcome::late, {}};
  report->id = self->state.id;
  return self->delegate(self->state.group, std::move(*report));
}

/// The group has the answer before anybody learns that the actor has ended.
park_session_answer on_park(session_pointer self) {
  park_session_answer answer{std::move(*self->state.own)};
  self->state.own.reset();
  self->quit();
  return answer;
}

session_actor::behavior_type session_behavior(session_pointer self, group_actor group, const session_id& id,
                                              const std::shared_ptr<session>& turns) {
  self->state.group = std::move(group);
  self->state.id = id;
  self->state.own.emplace(std::move(*turns));
  return {
      [self](const use_session_request& request) { return on_use(self, request); },
      [self](save_session_request& request) { return on_save(self, request); },
      [self](park_session_request) { return on_park(self); },
  };
}

} // namespace

session_actor spawn_session(caf::actor_system& system, group_actor group, const session_id& id,
                            session turns) {
  // The arguments of a spawn are copied, and one session has one owner.
  return system.spawn(session_behavior, std::move(group), id, std::make_shared<session>(std::move(turns)));
}

} // namespace terrace::actors
