#include "actors/connection/connection.hpp"

#include "actors/connection/verbs.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <poll.h>

#include <algorithm>

namespace terrace::actors {

namespace {
constexpr uint64_t frame_bytes_before_hello = 64 << 10;

void write_error(protocol::frame_builder& frame, request_id id, const error& why) {
  auto& body = frame.start();
  frame.finish(protocol::kind::error, id,
               wire::CreateErrorDirect(body, static_cast<uint8_t>(why.code), why.text.c_str()));
}

} // namespace

connection::connection(self_pointer owner, unique_fd socket, peer who, client_ptr record,
                       std::shared_ptr<const connection_environment> environment)
    : self(owner), environment_(std::move(environment)), peer_(std::move(who)), record_(std::move(record)),
      channel_(std::make_unique<frame_channel>(std::move(socket), owner->port(),
                                               caf::actor_cast<caf::strong_actor_ptr>(owner))) {}

connection::~connection() {
  close();
  mapped_.clear(); // before anybody can see that the client has gone
  environment_->client_probe->unquarantines(quarantined_bytes_);
  environment_->clients->remove(record_->id);
  environment_->client_probe->disconnected();
}

void connection::start() {
  environment_->client_probe->connected();
  channel_->set_frame_bytes_max(frame_bytes_before_hello);
  if (peer_.pidfd) {
    runtime::io_request operation;
    operation.code = runtime::io_code::poll;
    operation.fd = peer_.pidfd->get();
    operation.events = POLLIN;
    operation.keep_alive = peer_.pidfd;
    self->port().submit(std::move(operation), caf::actor_cast<caf::strong_actor_ptr>(self),
                        io_tag::peer_exit);
  }
  channel_->receive();
}

void connection::set_phase(phase next) {
  static constexpr const char* names[] = {"handshake", "serving", "draining", "closing", "quarantined"};
  phase_ = next;
  record_->state = names[static_cast<size_t>(next)];
}

void connection::greeted(std::string client_name) {
  record_->set_name(std::move(client_name));
  channel_->set_frame_bytes_max(protocol::frame_bytes_max);
  if (phase_ == phase::handshake)
    set_phase(phase::serving);
}

// ---- completions ----

void connection::io_completed(const runtime::io_done& done) {
  switch (done.tag) {
    case io_tag::receive: {
      uint64_t before = channel_->received_bytes;
      auto open = channel_->received(done.result);
      environment_->client_probe->received(channel_->received_bytes - before);
      if (phase_ == phase::closing || phase_ == phase::quarantined)
        return;
      pump();
      if (phase_ == phase::closing || phase_ == phase::quarantined)
        return;
      if (!open)
        end(open.error());
      else if (!*open)
        finish();
      return;
    }
    case io_tag::send: {
      uint64_t before = channel_->sent_bytes;
      std::vector<uint64_t> answered;
      bool open = channel_->sent(done.result, answered);
      environment_->client_probe->sent(channel_->sent_bytes - before);
      for (uint64_t id : answered)
        answer_sent(id);
      if (!open || (phase_ == phase::closing && !channel_->sending()))
        finish();
      else if (phase_ == phase::draining && requests_.empty())
        end({errc::gone, "the daemon is shutting down"});
      else
        pump();
      return;
    }
    case io_tag::peer_exit:
      // The process is gone, whoever else still holds the socket: everything it held ends now.
      leases_.clear();
      set_phase(phase::closing);
      self->quit();
      return;
    case io_tag::timer: timer_fired(); return;
    default: return;
  }
}

bool connection::has_credit() const {
  return requests_.size() < environment_->limits.credit_requests &&
         bytes_in_flight_ < environment_->limits.credit_bytes;
}

/// Serves what has been received while there is credit, then receives more. Out of credit it does neither: the socket
/// fills, and the client waits.
void connection::pump() {
  if (pumping_)
    return; // a verb answered at once: the loop below goes on
  pumping_ = true;
  while (phase_ <= phase::draining && has_credit()) {
    auto frame = channel_->next();
    if (!frame)
      break;
    serve(*frame);
  }
  pumping_ = false;
  if (phase_ > phase::draining)
    return;
  if (has_credit())
    channel_->receive();
  else
    environment_->client_probe->stopped_reading();
}

void connection::serve(protocol::frame& frame) {
  const verb* found = find_verb(frame.kind);
  request what{frame.request_id, frame.kind, nullptr};
  if (frame.request_id == 0 || requests_.contains(frame.request_id)) {
    violation(frame, {errc::bad_request,
                      frame.request_id == 0
                          ? "request id 0 is the daemon's own; expected 1 or more"
                          : "request id " + std::to_string(frame.request_id) + " is in flight already"});
    return;
  }
  if (found == nullptr) {
    violation(frame, {errc::bad_request, "a client does not send frames of kind " +
                                             std::to_string(static_cast<unsigned>(frame.kind))});
    return;
  }
  if (phase_ == phase::handshake && frame.kind != protocol::kind::hello) {
    violation(frame,
              {errc::bad_request, std::string("expected hello as the first frame, got ") + found->name});
    return;
  }
  if (phase_ == phase::serving && frame.kind == protocol::kind::hello) {
    violation(frame, {errc::bad_request, "hello was answered already; it comes once on a connection"});
    return;
  }
  if (frame.descriptors.size() != found->descriptors) {
    violation(frame,
              {errc::bad_request, std::string(found->name) + " takes " + std::to_string(found->descriptors) +
                                      " descriptors, " + std::to_string(frame.descriptors.size()) + " came"});
    return;
  }
  what.context = std::make_shared<request_context>();
  what.context->connection = record_->id;
  what.context->request = what.id;
  in_flight entry;
  entry.context = what.context;
  entry.kind = what.kind;
  entry.arrived = environment_->now();
  entry.deadline = entry.arrived + environment_->limits.request_deadline;
  entry.bytes = frame.body.size() + protocol::header_bytes;
  arm_timer(entry.deadline);
  bytes_in_flight_ += entry.bytes;
  requests_.emplace(what.id, std::move(entry));
  record_->requests_in_flight = static_cast<uint32_t>(requests_.size());
  ++record_->requests;
  environment_->request_probe->started(static_cast<size_t>(what.kind));
  if (phase_ == phase::draining && !found->while_draining) {
    environment_->client_probe->refused(metrics::refusal::draining);
    refuse(what, {errc::busy, "the daemon is shutting down"});
    return;
  }
  found->serve(*this, what, frame);
}

void connection::violation(const protocol::frame& frame, const error& why) {
  environment_->client_probe->refused(metrics::refusal::malformed);
  end({why.code, why.text + " (frame of kind " + std::to_string(static_cast<unsigned>(frame.kind)) +
                     ", request " + std::to_string(frame.request_id) + ")"});
}

// ---- answers ----

void connection::answer(const request& what, errc outcome, std::unique_ptr<protocol::frame_builder> frame,
                        std::vector<unique_fd> descriptors) {
  auto entry = requests_.find(what.id);
  if (phase_ >= phase::closing || entry == requests_.end() || entry->second.context != what.context ||
      entry->second.answered)
    return; // the connection is ending: the reason is the last frame it sends
  entry->second.answered = true;
  auto latency = environment_->now() - entry->second.arrived;
  environment_->request_probe->finished(static_cast<size_t>(what.kind), outcome, latency);
  if (outcome == errc::busy)
    environment_->client_probe->refused(metrics::refusal::queue_full);
  if (frame->bytes().empty())
    write_error(
        *frame, what.id,
        {errc::unsupported, "the answer is longer than a frame may be; ask for fewer chunks at a time"});
  channel_->send({std::move(frame), std::move(descriptors), what.id});
}

void connection::refuse(const request& what, const error& why) {
  auto frame = channel_->builder();
  write_error(*frame, what.id, why);
  answer(what, why.code, std::move(frame), {});
}

void connection::answer_sent(request_id id) {
  auto entry = requests_.find(id);
  if (entry == requests_.end())
    return;
  bytes_in_flight_ -= entry->second.bytes;
  requests_.erase(entry);
  record_->requests_in_flight = static_cast<uint32_t>(requests_.size());
}

// ---- ends ----

bool connection::cancel(request_id id, errc why) {
  auto entry = requests_.find(id);
  if (entry == requests_.end() || entry->second.answered)
    return false;
  errc expected = errc::ok;
  if (entry->second.context->ended.compare_exchange_strong(expected, why))
    sweep(); // once a request, however often it is cancelled
  return true;
}

/// Whoever waits on behalf of a request that ended is answered now.
void connection::sweep() {
  caf::anon_send(group().group, sweep_notice{});
  caf::anon_send(group().host, sweep_notice{});
  if (group().disk()) {
    caf::anon_send(group().disk()->tier, sweep_notice{});
    caf::anon_send(group().disk()->write_through, sweep_notice{});
  }
}

void connection::end(const error& why) {
  if (phase_ >= phase::closing)
    return;
  environment_->log("connection " + std::to_string(static_cast<uint64_t>(record_->id)) + " (pid " +
                    std::to_string(record_->pid) + ") ends: " + why.text);
  set_phase(phase::closing);
  auto frame = channel_->builder();
  write_error(*frame, 0, why);
  channel_->send({std::move(frame), {}, 0});
}

/// Gives everything back but what a living client may still be reading through its mapping.
void connection::close() {
  bool any = false;
  for (auto& [id, entry] : requests_) {
    errc expected = errc::ok;
    any = entry.context->ended.compare_exchange_strong(expected, errc::cancelled) || any;
    if (!entry.answered)
      environment_->request_probe->finished(static_cast<size_t>(entry.kind), errc::cancelled,
                                            environment_->now() - entry.arrived);
  }
  requests_.clear();
  if (any)
    sweep();
  for (const auto& [id, region] : regions_)
    environment_->client_probe->unmaps(region->size());
  regions_.clear();
  if (staging_)
    environment_->client_probe->unstages(environment_->limits.staging_bytes);
  staging_.reset();
  spaces_.clear();
  caf::anon_send(group().group, end_owner_notice{record_->id});
  for (const auto& [id, held] : leases_)
    lease_ended(held);
  std::erase_if(leases_, [](const auto& entry) { return entry.second.reading.empty(); });
  for (auto& [id, held] : leases_)
    held.owner = false;
  record_->requests_in_flight = 0;
  record_->regions = 0;
  record_->region_bytes = 0;
  record_->reservations = 0;
  record_->leases = static_cast<uint32_t>(leases_.size());
  channel_->shut();
}

/// The socket has ended. Memory that a living process may still be reading stays until it dies or confirms.
void connection::finish() {
  close();
  if (leases_.empty() || !peer_.pidfd || daemon_ends_) { // clients' mappings outlive the daemon's
    set_phase(phase::closing);
    self->quit();
    return;
  }
  set_phase(phase::quarantined);
  for (const auto& [id, held] : leases_)
    for (const hold_ptr& objects : held.reading)
      for (const object_place& place : objects->places())
        quarantined_bytes_ += place.physical_bytes;
  environment_->client_probe->quarantines(quarantined_bytes_);
  environment_->log("connection " + std::to_string(static_cast<uint64_t>(record_->id)) + " (pid " +
                    std::to_string(record_->pid) +
                    ") closed its socket; what it may be reading stays until it ends");
}

void connection::peer_confirmed(pid_t pid) {
  // Processes of a PID namespace that is not visible here all have the number 0: only their ends count.
  if (phase_ == phase::quarantined && pid != 0 && pid == peer_.pid)
    self->quit();
}

void connection::drain() {
  daemon_ends_ = true;
  if (phase_ == phase::quarantined)
    self->quit();
  if (phase_ > phase::serving)
    return;
  set_phase(phase::draining);
  if (requests_.empty())
    end({errc::gone, "the daemon is shutting down"});
}

// ---- time ----

void connection::arm_timer(clock::time_point at) {
  if (at >= timer_at_)
    return;
  if (timer_at_ != clock::time_point::max())
    self->port().cancel(timer_);
  timer_at_ = at;
  runtime::io_request operation;
  operation.code = runtime::io_code::timeout;
  operation.after = std::max(at - environment_->now(), clock::duration(0));
  timer_ =
      self->port().submit(std::move(operation), caf::actor_cast<caf::strong_actor_ptr>(self), io_tag::timer);
}

void connection::timer_fired() {
  auto now = environment_->now();
  if (now < timer_at_ && timer_at_ != clock::time_point::max())
    return; // an earlier one was armed in its place
  timer_at_ = clock::time_point::max();
  if (phase_ > phase::draining)
    return;
  auto earliest = clock::time_point::max();
  bool any = false;
  for (auto& [id, entry] : requests_) {
    if (entry.answered)
      continue;
    if (entry.deadline > now) {
      earliest = std::min(earliest, entry.deadline);
      continue;
    }
    errc expected = errc::ok;
    any = entry.context->ended.compare_exchange_strong(expected, errc::deadline) || any;
  }
  if (any)
    sweep();
  for (auto& [id, held] : leases_) {
    if (!held.owner || held.warned)
      continue;
    auto due = held.what->taken + environment_->limits.lease_warn_after;
    if (due > now) {
      earliest = std::min(earliest, due);
      continue;
    }
    held.warned = true;
    environment_->client_probe->lease_old();
    environment_->log("connection " + std::to_string(static_cast<uint64_t>(record_->id)) + " (" +
                      record_->name() + ", pid " + std::to_string(record_->pid) + ") holds a lease on " +
                      std::to_string(held.what->chunks.size()) + " chunks for longer than lease.warn_after");
  }
  if (earliest != clock::time_point::max())
    arm_timer(earliest);
}

void connection::set_deadline(const request& what, uint32_t deadline_ms) {
  auto entry = requests_.find(what.id);
  if (deadline_ms == 0 || entry == requests_.end())
    return;
  entry->second.deadline = entry->second.arrived + std::chrono::milliseconds(deadline_ms);
  arm_timer(entry->second.deadline);
}

} // namespace terrace::actors
