#include "actors/connection/connection_actor.hpp"

#include <caf/send.hpp>

namespace terrace::actors {

namespace {

struct connection_seed {
  unique_fd socket;
  peer who;
  client_ptr record;
  std::shared_ptr<const connection_environment> environment;
};

connection::interface::behavior_type connection_behavior(connection::self_pointer self,
                                                         const std::shared_ptr<connection_seed>& seed) {
  self->state.work = std::make_unique<connection>(self, std::move(seed->socket), std::move(seed->who),
                                                  seed->record, seed->environment);
  // Answers of a turn are sent at its end, not before: whatever it does meanwhile, such as sending other messages, comes
  // before what anybody does with the answers.
  self->each_turn([self] { self->state.work->inbox().begin_turn(); },
                  [self] { self->state.work->inbox().end_turn(); });
  return self->in_turns(
      [self](begin_notice) { self->state.work->on_begin(); },
      [self](const runtime::io_done& done) { self->state.work->on_io_done(done); },
      [](const resume_notice& notice) { (*notice.work)(); },
      [self](drain_notice) { self->state.work->inbox().drain(); },
      [self](leave_notice) { self->state.work->inbox().leave(); },
      [self](const revoke_request& request) { return self->state.work->on_revoke(request.id); },
      [self](check_client_request) { return self->state.work->on_check(); },
      [self](const confirm_notice& notice) { self->state.work->inbox().confirmed(notice.pid); });
}

} // namespace

connection_actor spawn_connection(caf::actor_system& system, const runtime::home& home, unique_fd socket,
                                  peer who, connection_id id,
                                  std::shared_ptr<const connection_environment> environment) {
  auto record = std::make_shared<client_record>();
  record->id = id;
  record->group = environment->group->name;
  record->pid = who.pid;
  record->uid = who.uid;
  record->gid = who.gid;
  record->since = environment->now();
  record->leased = environment->group->leases->open();
  auto seed = std::make_shared<connection_seed>(
      connection_seed{std::move(socket), std::move(who), record, environment});
  auto handle = runtime::spawn_homed(system, home, connection_behavior, seed);
  record->actor = handle;
  environment->clients->add(record);
  caf::anon_send(handle,
                 begin_notice{}); // after it is in the directory, from which it removes itself at its end
  return handle;
}

} // namespace terrace::actors
