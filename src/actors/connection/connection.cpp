#include "actors/connection/connection.hpp"

#include "actors/connection/verbs.hpp"
#include "protocol/error_frame.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <poll.h>

#include <algorithm>
#include <new>

namespace terrace::actors {

connection::connection(self_pointer owner, unique_fd socket, peer who, client_ptr record,
                       std::shared_ptr<const connection_environment> environment)
    : self_(owner), environment_(std::move(environment)), peer_(std::move(who)), record_(std::move(record)),
      log_(record_, {environment_->log, environment_->detail, environment_->ends}),
      channel_(std::make_unique<frame_channel>(std::move(socket), owner->port(),
                                               caf::actor_cast<caf::strong_actor_ptr>(owner),
                                               environment_->teardown)),
      requests_(record_->id,
                {environment_->limits.credit_requests, environment_->limits.credit_bytes,
                 environment_->limits.request_deadline, environment_->limits.request_deadline_max}),
      gate_(record_->id, environment_->memory), deadlines_(environment_->limits.request_deadline),
      leased_(environment_->group->leases->open()),
      holdings_({environment_->limits.staging_bytes, environment_->limits.reservations_max,
                 environment_->limits.spaces_max, environment_->limits.regions_max,
                 environment_->limits.leases_max, environment_->limits.lease_objects_max},
                environment_->teardown),
      regions_(region_budget::make(
          {"the connection", "connection.region_bytes", environment_->limits.region_bytes},
          environment_->regions)) {}

connection::~connection() {
  log_.debug([] { return std::string("has ended"); });
  close();
  holdings_.drop_segments(); // before others can see that the client is gone
  environment_->client_probe->unquarantines(quarantined_bytes_);
  environment_->clients->remove(record_->id);
  environment_->client_probe->disconnected();
}

void connection::on_begin() {
  environment_->client_probe->connected();
  channel_->set_frame_bytes_max(protocol::hello_bytes_max);
  if (peer_.pidfd) {
    runtime::io_request operation;
    operation.code = runtime::io_code::poll;
    operation.fd = peer_.pidfd->get();
    operation.events = POLLIN;
    operation.keep_alive = peer_.pidfd;
    self_->port().submit(std::move(operation), caf::actor_cast<caf::strong_actor_ptr>(self_),
                         io_tag::peer_exit);
  }
  gate_.on_room(on_any_thread([this] { pump(); }));
  end_by(environment_->limits.handshake_deadline);
  channel_->receive();
}

void connection::set_phase(phase next) {
  phase_ = next;
  record_->state = to_string(next);
}

result<void> connection::greeted(std::string client_name, bool observes) {
  auto& clients = *environment_->clients;
  if (observes) {
    if (auto leaves = clients.admit_observer(record_->id))
      caf::anon_send(leaves->actor, leave_notice{});
  } else if (auto admitted = clients.admit_client(
                 record_->id, {environment_->limits.connections_max, environment_->limits.groups});
             !admitted) {
    environment_->client_probe->refused(metrics::refusal::connections_max);
    return admitted;
  }
  observes_ = observes;
  deadlines_.moved_on();
  record_->set_name(std::move(client_name));
  channel_->set_frame_bytes_max(protocol::frame_bytes_max);
  if (phase_ == phase::handshake)
    set_phase(phase::serving);
  log_.debug([&] { return "has connected to group " + group().name; });
  return {};
}

// ---- completions ----

void connection::on_io_done(const runtime::io_done& done) {
  switch (done.tag) {
    case io_tag::receive: on_received(done.result); return;
    case io_tag::send: on_sent(done.result); return;
    case io_tag::peer_exit: on_peer_exit(); return;
    case io_tag::timer: on_timer(); return;
    case io_tag::hang_up: on_hang_up(done.result); return;
    default: return;
  }
}

void connection::on_received(int32_t bytes) {
  uint64_t before = channel_->received_bytes;
  auto open = channel_->received(bytes);
  environment_->client_probe->received(channel_->received_bytes - before);
  if (phase_ >= phase::closing)
    return;
  pump();
  if (phase_ >= phase::closing)
    return;
  if (!open)
    end(open.error());
  else if (!*open)
    finish();
}

void connection::on_sent(int32_t bytes) {
  uint64_t before = channel_->sent_bytes;
  std::vector<uint64_t> answered;
  bool open = channel_->sent(bytes, answered);
  environment_->client_probe->sent(channel_->sent_bytes - before);
  for (uint64_t id : answered)
    answer_sent(id);
  deadlines_.took(environment_->now());
  if (!open || (phase_ == phase::closing && !channel_->sending()))
    finish();
  else if (phase_ == phase::draining && requests_.empty())
    end({errc::gone, "the daemon is shutting down"});
  else
    pump();
}

/// The process has ended, even if others have the socket open: release everything.
void connection::on_peer_exit() {
  holdings_.end_readings();
  set_phase(phase::closing);
  self_->quit();
}

/// While a receive is in the ring, it reports the end, after what came before it. A client that only sends no
/// more may still read why it is ended.
void connection::on_hang_up(int32_t events) {
  if (!channel_->hung_up(events) || phase_ == phase::quarantined)
    return;
  if (phase_ == phase::closing ? (events & POLLHUP) != 0 : !channel_->receiving())
    finish();
}

void connection::serve(protocol::frame& frame) {
  const verb* found = find_verb(frame.kind);
  arriving_request arriving{frame.request_id, frame.kind, requests_.contains(frame.request_id)};
  arriving.descriptors = frame.descriptors.size();
  if (found != nullptr) {
    arriving.verb = found->name;
    arriving.while_draining = found->while_draining;
    arriving.descriptors_of_verb = found->descriptors;
  }
  if (auto why = violation_of(arriving, phase_); why.code != errc::ok) {
    violation(frame, why);
    return;
  }
  auto now = environment_->now();
  arm_timer(now + environment_->limits.request_deadline);
  request what{frame.request_id, frame.kind, nullptr};
  what.context = requests_.begin(what.id, what.kind, frame.body.size() + protocol::header_bytes, now);
  what.context->group = environment_->group->number;
  record_->requests_in_flight = static_cast<uint32_t>(requests_.size());
  ++record_->requests;
  environment_->request_probe->started(static_cast<size_t>(what.kind));
  if (auto refused = refusal_of(arriving, phase_, observes_)) {
    if (refused->malformed)
      refuse_frame(what, frame, refused->why);
    else
      refuse_unread(what, frame, metrics::refusal::draining, refused->why);
    return;
  }
  // A request that needs more memory than there is must not take the connection's others with it.
  try {
    found->serve(*this, what, frame);
  } catch (const std::bad_alloc&) {
    refuse_without_memory(what);
  }
}

void connection::refuse_without_memory(const request& what) {
  refuse(what,
         {errc::no_space, "the daemon has no memory to serve this " +
                              std::string(protocol::to_string(what.kind)) + "; ask for less at a time"});
}

void connection::refuse_frame(const request& what, const protocol::frame& frame, const error& why) {
  if (phase_ == phase::handshake)
    violation(frame, why);
  else
    refuse_unread(what, frame, metrics::refusal::malformed, why);
}

/// Its verb does not get it.
void connection::refuse_unread(const request& what, const protocol::frame& frame, metrics::refusal as,
                               const error& why) {
  environment_->client_probe->refused(as);
  refuse(what, why);
  if (frame.kind == protocol::kind::lookup)
    verbs::lookup_refused(*this, what, frame.body);
}

void connection::violation(const protocol::frame& frame, const error& why) {
  environment_->client_probe->refused(metrics::refusal::malformed);
  end({why.code, why.text + " (frame of kind " + std::to_string(static_cast<unsigned>(frame.kind)) +
                     ", request " + std::to_string(frame.request_id) + ")"});
}

// ---- answers ----

void connection::answer(const request& what, errc outcome, std::unique_ptr<protocol::frame_builder> frame,
                        std::vector<unique_fd> descriptors) {
  if (phase_ >= phase::closing)
    return; // the reason is its last frame
  auto latency = requests_.answer(what.id, what.context, environment_->now());
  if (!latency)
    return;
  environment_->request_probe->finished(static_cast<size_t>(what.kind), outcome, *latency);
  log_.answered(what.id, what.kind, outcome, *latency, what.context->trace);
  if (outcome == errc::busy)
    environment_->client_probe->refused(metrics::refusal::queue_full);
  if (frame->bytes().empty())
    protocol::write_error(
        *frame, what.id,
        {errc::unsupported, "the answer does not fit in a frame; request fewer chunks at a time"});
  requests_.charge(what.id, frame->bytes().size());
  account_memory(gate_.unfinished_bytes());
  if (!channel_->sending()) {
    deadlines_.took(environment_->now());
    arm_timer(deadlines_.next(environment_->now(), true)); // for a client that does not read
  }
  channel_->send({std::move(frame), std::move(descriptors), what.id});
}

void connection::refuse(const request& what, const error& why) {
  auto frame = channel_->builder();
  const std::string& trace = what.context->trace;
  protocol::write_error(*frame, what.id,
                        {why.code, why.text + (trace.empty() ? "" : " (trace " + trace + ")")});
  answer(what, why.code, std::move(frame), {});
}

void connection::answer_sent(request_id id) {
  requests_.sent(id);
  account_memory(gate_.unfinished_bytes());
  record_->requests_in_flight = static_cast<uint32_t>(requests_.size());
}

// ---- ends ----

bool connection::cancel(request_id id, errc why) {
  auto outcome = requests_.cancel(id, why);
  if (outcome == request_table::cancelled::now) { // once per request, however often it is cancelled
    sweep();
    resume_ended();
  }
  return outcome != request_table::cancelled::unknown;
}

/// Answers everything that waits for requests that have ended.
void connection::sweep() {
  caf::anon_send(group().group, sweep_notice{});
  for (const tier_parts& tier : group().tiers()) {
    caf::anon_send(tier.tier, sweep_notice{});
    if (tier.write_through)
      caf::anon_send(tier.write_through, sweep_notice{});
  }
}

/// What waits for the teardown goes on, to refuse its request; it does nothing when its turn comes.
void connection::resume_ended() {
  std::erase_if(after_teardown_, [this](const waiting_for_teardown& each) {
    if (each.context->live())
      return false;
    if (auto work = each.work.lock())
      self_->send(self_, resume_notice{std::move(work)});
    return true;
  });
}

void connection::end(const error& why) {
  if (phase_ >= phase::closing)
    return;
  gate_.pass_on();
  log_.end("ends: " + why.text, environment_->now());
  set_phase(phase::closing);
  auto frame = channel_->builder();
  protocol::write_error(*frame, 0, why);
  channel_->send({std::move(frame), {}, 0});
  channel_->watch_hang_up();
  end_by(environment_->limits.handshake_deadline); // for a client that does not read
}

void connection::on_leave() {
  if (phase_ < phase::draining)
    end({errc::busy,
         observes_ ? "as many observers are connected as the daemon allows: a newer one takes this place"
                   : "as many silent connections exist as connection.connections_max: expected hello "
                     "as soon as a connection is open"});
}

/// Releases everything except what a living client may still be reading through its mapping.
void connection::close() {
  bool any = requests_.end_all(environment_->now(), [&](protocol::kind verb, auto age) {
    environment_->request_probe->finished(static_cast<size_t>(verb), errc::cancelled, age);
  });
  if (any)
    sweep();
  account_memory(0);
  gate_.pass_on();
  if (holdings_.present_staging() != nullptr)
    environment_->client_probe->unstages(environment_->limits.staging_bytes);
  if (!std::exchange(owner_ended_, true))
    caf::anon_send(group().group, end_owner_notice{record_->id});
  for (const auto& ended : holdings_.close())
    lease_ended(ended);
  record_->requests_in_flight = 0;
  record_->regions = 0;
  record_->region_bytes = 0;
  record_->reservations = 0;
  show_leases();
  channel_->shut();
}

/// The socket is closed. Memory that a living process may still be reading is kept until it dies or confirms.
void connection::finish() {
  if (phase_ == phase::quarantined)
    return; // an answer that was being sent when the socket closed
  close();
  if (holdings_.leases() == 0 || !peer_.pidfd || daemon_ends_) { // clients' mappings outlive the daemon's
    set_phase(phase::closing);
    self_->quit();
    return;
  }
  set_phase(phase::quarantined);
  environment_->clients->quarantine(record_->id);
  quarantined_bytes_ = holdings_.reading_bytes();
  environment_->client_probe->quarantines(quarantined_bytes_);
  log_.end("closed its socket; objects that it may be reading are kept until it ends", environment_->now());
}

void connection::on_confirmed(pid_t pid) {
  // Processes of an invisible PID namespace all have the number 0: only their ends count.
  if (phase_ == phase::quarantined && pid != 0 && pid == peer_.pid)
    self_->quit();
}

void connection::on_drain() {
  daemon_ends_ = true;
  if (phase_ == phase::quarantined)
    self_->quit();
  if (phase_ > phase::serving)
    return;
  set_phase(phase::draining);
  if (requests_.empty())
    end({errc::gone, "the daemon is shutting down"});
}

std::function<void()> connection::on_any_thread(std::function<void()> work) {
  auto shared = std::make_shared<std::function<void()>>(std::move(work));
  return [owner = caf::actor_cast<caf::actor_addr>(self_), shared] {
    if (auto there = caf::actor_cast<connection_actor>(owner))
      caf::anon_send(there, resume_notice{shared});
  };
}

/// If it needs more memory than there is, its request is refused.
std::function<void()> connection::as_part_of(const request& what, std::function<void()> work) {
  return [this, what, go_on = std::move(work)] {
    try {
      go_on();
    } catch (const std::bad_alloc&) {
      refuse_without_memory(what);
    }
  };
}

void connection::resume_after_teardown(const request& what, std::function<void()> work) {
  if (!environment_->teardown) {
    resume(what, std::move(work));
    return;
  }
  auto shared = std::make_shared<std::function<void()>>(as_part_of(what, std::move(work)));
  std::erase_if(after_teardown_, [](const auto& each) { return each.work.expired(); });
  after_teardown_.push_back({what.context, shared});
  environment_->teardown->run([owner = caf::actor_cast<caf::actor_addr>(self_), shared]() mutable {
    if (auto there = caf::actor_cast<connection_actor>(owner))
      caf::anon_send(there,
                     resume_notice{std::move(shared)}); // what it owns must not end on the teardown's thread
  });
}

void connection::resume(const request& what, std::function<void()> work) {
  assert(resuming_ < requests_max());
  ++resuming_;
  auto part = [this, go_on = as_part_of(what, std::move(work))] {
    --resuming_;
    go_on();
  };
  self_->send(self_, resume_notice{std::make_shared<std::function<void()>>(std::move(part))});
}

} // namespace terrace::actors
