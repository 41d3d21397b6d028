#include "actors/connection/connection.hpp"

#include "actors/connection/request.hpp"
#include "actors/connection/verbs.hpp"
#include "base/printable.hpp"
#include "runtime/answer.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <cassert>
#include <new>
#include <poll.h>

namespace terrace::actors {

connection::connection(self_pointer self, unique_fd socket, peer who, client_ptr record,
                       std::shared_ptr<const connection_environment> environment)
    : self_(self), client_(std::move(who), std::move(record), std::move(environment)),
      inbox_(*this, client_, std::move(socket), self->port(), caf::actor_cast<caf::strong_actor_ptr>(self)),
      bell_(self->port(), caf::actor_cast<caf::strong_actor_ptr>(self)) {}

connection::~connection() {
  client_.log().debug([] { return std::string("has ended"); });
  close();
}

void connection::on_begin() {
  client_.environment().client_probe->connected();
  if (const auto& pidfd = client_.who().pidfd) {
    runtime::io_request operation;
    operation.code = runtime::io_code::poll;
    operation.fd = pidfd->get();
    operation.events = POLLIN;
    operation.keep_alive = pidfd;
    self_->port().submit(std::move(operation), caf::actor_cast<caf::strong_actor_ptr>(self_),
                         io_tag::peer_exit);
  }
  inbox_.begin();
}

void connection::on_io_done(const runtime::io_done& done) {
  switch (done.tag) {
    case io_tag::receive: inbox_.received(done.result); return;
    case io_tag::send: inbox_.sent(done.result); return;
    case io_tag::peer_exit: on_peer_exit(); return;
    case io_tag::timer: inbox_.timer(); return;
    case io_tag::hang_up: inbox_.hung_up(done.result); return;
    case io_tag::bell: on_bell(done.result); return;
    default: return;
  }
}

/// The process has ended, even if others have the socket open: release everything.
void connection::on_peer_exit() {
  client_.holdings().client_ended();
  inbox_.process_ended();
  quit();
}

result<void> connection::greeted(std::string client_name, bool observes) {
  assert(inbox_.phase() == connection_phase::handshake); // so hello's notices are sent once
  const auto& environment = client_.environment();
  const auto& record = client_.record();
  auto leaves = environment.clients->admit(record->id, observes,
                                           {environment.limits.connections_max, environment.limits.groups});
  if (!leaves) {
    environment.client_probe->refused(environment.clients->drains() ? metrics::refusal::draining
                                                                    : metrics::refusal::connections_max);
    return tl::unexpected(leaves.error());
  }
  if (*leaves)
    caf::anon_send((*leaves)->actor, leave_notice{});
  record->set_name(std::move(client_name));
  inbox_.greeted(observes);
  client_.log().debug([&] { return "has connected to group " + client_.group().name; });
  return {};
}

// ---- requests ----

void connection::serve(const request_entry& entry, protocol::frame& frame) {
  // A request that needs more memory than there is must not take the connection's others with it.
  try {
    start(entry, frame);
  } catch (const std::bad_alloc&) {
    inbox_.refuse(entry, no_memory_for(entry.kind));
  }
}

void connection::start(const request_entry& entry, protocol::frame& frame) {
  if (idle_requests_.empty())
    idle_requests_.emplace_back(*this);
  serving_.splice(serving_.end(), idle_requests_, idle_requests_.begin());
  auto at = std::prev(serving_.end());
  static_cast<request_entry&>(*at) = entry;
  at->serve(*find_verb(frame.kind), frame, at);
}

void connection::served(std::list<client_request>::iterator at) {
  at->clear();
  idle_requests_.splice(idle_requests_.begin(), serving_, at);
}

void connection::refused(const request_entry& entry, const protocol::frame& frame) {
  if (frame.kind == protocol::kind::lookup)
    verbs::lookup_refused(client_, entry, frame.body);
}

/// Whatever waits for requests that have ended is answered. What waits for the teardown, for room or for a counter goes on,
/// to refuse its request; it does nothing when its turn comes.
void connection::requests_ended() {
  sweep();
  for (auto& work : after_teardown_.take_ended())
    self_->send(self_, resume_notice{std::move(work)});
  inbox_.refuse_ended();
  refuse_ended_waits();
}

void connection::sweep() {
  const trust_group& group = client_.group();
  caf::anon_send(group.group, sweep_notice{});
  for (const tier_handle& tier : group.tiers()) {
    caf::anon_send(tier.tier, sweep_notice{});
    if (tier.write_through)
      caf::anon_send(tier.write_through, sweep_notice{});
  }
}

// ---- parts of requests ----

std::function<void()> connection::on_any_thread(std::function<void()> work) {
  auto shared = std::make_shared<std::function<void()>>(std::move(work));
  return [owner = caf::actor_cast<caf::actor_addr>(self_), shared] {
    if (auto there = caf::actor_cast<connection_actor>(owner))
      caf::anon_send(there, resume_notice{shared});
  };
}

/// The populator may have a mapping in hand, which is unmapped when it lets go of it.
void connection::resume_after_teardown(const request_entry& entry, std::function<void()> work) {
  const teardown_ptr& line = client_.environment().teardown;
  if (!line || !client_.environment().populator) {
    resume_after(line, entry, std::move(work));
    return;
  }
  auto marked = marked_work(entry, std::move(work));
  client_.environment().populator->after_slice(
      [line, marked = std::move(marked)]() mutable { line->run(std::move(marked)); });
}

void connection::resume_after(const teardown_ptr& line, const request_entry& entry,
                              std::function<void()> work) {
  if (line)
    line->run(marked_work(entry, std::move(work)));
  else
    resume(std::move(work));
}

/// Returns what another thread runs when the request may go on.
std::function<void()> connection::marked_work(const request_entry& entry, std::function<void()> work) {
  auto shared = std::make_shared<std::function<void()>>(std::move(work));
  after_teardown_.add(entry.context, shared);
  return [owner = caf::actor_cast<caf::actor_addr>(self_), shared]() mutable {
    if (auto there = caf::actor_cast<connection_actor>(owner))
      caf::anon_send(there,
                     resume_notice{std::move(shared)}); // what it owns must not end on the other thread
  };
}

void connection::resume(std::function<void()> work) {
  assert(resuming_ < requests_max());
  ++resuming_;
  auto part = [this, go_on = std::move(work)] {
    --resuming_;
    go_on();
  };
  self_->send(self_, resume_notice{std::make_shared<std::function<void()>>(std::move(part))});
}

// ---- leases ----

void connection::add_lease(lease_ptr taken) {
  tell_group(add_lease_notice{taken->id, taken->owner, taken});
  client_.environment().client_probe->lease_taken();
  inbox_.arm_timer(taken->taken + client_.environment().limits.lease_warn_after);
  client_.log().debug([&] { return "takes a lease on " + format_counted(taken->chunks.size(), "chunk"); });
  client_.holdings().add(std::move(taken));
  client_.show();
}

bool connection::release_lease(const lease_id& id) {
  bool later = client_.holdings().ends_elsewhere(id);
  auto ended = client_.holdings().release(id);
  if (!ended)
    return false;
  if (later)
    serve_after_lease_ends();
  if (ended->owner)
    tell_group(end_lease_notice{id, client_.record()->id});
  client_.count_lease_end(*ended);
  client_.log().debug([] { return std::string("has released a lease"); });
  count_quarantine();
  client_.show();
  return true;
}

revoke_answer connection::on_revoke(const lease_id& id) {
  bool later = client_.holdings().ends_elsewhere(id);
  auto revoked = client_.holdings().revoke(id);
  if (!revoked)
    return {};
  if (later)
    serve_after_lease_ends();
  if (revoked->ended.owner) {
    tell_group(end_lease_notice{id, client_.record()->id});
    client_.environment().client_probe->lease_revoked();
  }
  client_.count_lease_end(revoked->ended);
  client_.log().info(std::string(revoked->ended.owner ? "had its lease" : "had a lease that it read") +
                     " revoked by an operator; " + readable_bytes(revoked->reading_bytes) +
                     " that it may be reading are kept until it releases them or ends");
  count_quarantine();
  client_.show();
  return {{}, true, revoked->reading_bytes};
}

bool connection::has_read(const lease_id& id) {
  bool later = client_.holdings().has_read(id);
  if (later)
    serve_after_lease_ends();
  return later;
}

/// The requests that follow find the room that the lease leaves.
void connection::serve_after_lease_ends() {
  inbox_.gate().sent_without_credit();
  assert(inbox_.gate().without_credit() <= without_credit_max());
  client_.group().lease_ends->run(on_any_thread([this] {
    inbox_.gate().read_without_credit();
    inbox_.pump();
  }));
}

std::function<void()> connection::lease_ender(const lease_id& id) {
  return on_any_thread([this, id] {
    if (!client_.holdings().may_be_reading(id))
      release_lease(id);
  });
}

// ---- its end ----

/// The connection gives back what it still has when the actor's state is destroyed, after requests to it have failed.
void connection::quit() {
  if (!std::exchange(quits_, true))
    ending_.begin();
  self_->quit();
}

/// Releases everything except what a living client may still be reading through its mapping.
void connection::close() {
  const auto& environment = client_.environment();
  bool any = inbox_.close();
  for (auto each = serving_.begin(); each != serving_.end();)
    (each++)->stop(); // one that is running ends when it suspends
  if (any)
    sweep();
  bell_.remove();
  for (size_t each = waits_.take_all().size(); each != 0; --each)
    environment.client_probe->awaits_no_counter();
  client_holdings& holdings = client_.holdings();
  if (holdings.present_staging() != nullptr)
    environment.client_probe->unstages(environment.limits.staging_bytes);
  if (!std::exchange(owner_ended_, true))
    caf::anon_send(client_.group().group, end_owner_notice{client_.record()->id});
  for (const auto& ended : holdings.close())
    client_.count_lease_end(ended);
  client_.show();
}

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

// A check of what a client has.

caf::result<check_client_answer> connection::on_check() {
  check_client_answer made;
  if (client_.holdings().leases() > check_client_request::leases_max) {
    made.left_out = true;
    return made;
  }
  made.leases = client_.holdings().kept_leases();
  made.readings = client_.holdings().readings();
  if (owner_ended_) // it keeps what its client may be reading, and nothing else
    return made;
  made.differences = client_.holdings().check();
  for (std::string& one : inbox_.requests().check())
    made.differences.push_back(std::move(one));
  for (std::string& one : made.differences)
    one = "connection " + std::to_string(static_cast<uint64_t>(client_.record()->id)) + ": " + one;
  auto reply = make_answer<check_client_answer>(self_);
  auto compared = std::make_shared<check_client_answer>(std::move(made));
  // The group has read all earlier notices of this connection when it reads this.
  ask(
      client_.group().group, check_owner_request{client_.record()->id, client_.holdings().owned()},
      [reply, compared](const check_answer_texts& answer) mutable {
        compared->differences.insert(compared->differences.end(), answer.differences.begin(),
                                     answer.differences.end());
        reply.deliver(std::move(*compared));
      },
      [reply, compared]() mutable { reply.deliver(std::move(*compared)); });
  return reply.promise();
}

} // namespace terrace::actors
