#include "actors/connection/connection.hpp"

#include "actors/connection/request.hpp"
#include "actors/connection/verbs.hpp"
#include "memory/heap_trim.hpp"
#include "protocol/error_frame.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <poll.h>

#include <algorithm>
#include <cassert>
#include <new>

namespace terrace::actors {

connection::connection(self_pointer owner, unique_fd socket, peer who, client_ptr record,
                       std::shared_ptr<const connection_environment> environment)
    : self_(owner), environment_(std::move(environment)), peer_(std::move(who)), record_(std::move(record)),
      log_(record_, {environment_->log, environment_->detail, environment_->ends}),
      channel_(std::make_unique<frame_channel>(std::move(socket), owner->port(),
                                               caf::actor_cast<caf::strong_actor_ptr>(owner),
                                               environment_->teardown)),
      life_(peer_.pid, peer_.pidfd != nullptr),
      requests_(record_->id,
                {environment_->limits.credit_requests, environment_->limits.credit_bytes,
                 environment_->limits.request_deadline, environment_->limits.request_deadline_max}),
      waiting_({environment_->limits.credit_requests, environment_->limits.credit_bytes}),
      gate_(record_->id, environment_->memory), deadlines_(environment_->limits.request_deadline),
      leased_(record_->leased),
      holdings_({environment_->limits.staging_bytes, environment_->limits.reservations_max,
                 environment_->limits.spaces_max, environment_->limits.regions_max,
                 environment_->limits.leases_max, environment_->limits.lease_objects_max},
                environment_->teardown, environment_->group->lease_ends),
      regions_(region_budget::make(
          {"the connection", "connection.region_bytes", environment_->limits.region_bytes},
          environment_->regions)),
      bell_(owner->port(), caf::actor_cast<caf::strong_actor_ptr>(owner)) {}

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
  gate_.on_objects(on_any_thread([this] { take_room(); }));
  end_by(environment_->limits.handshake_deadline);
  channel_->receive();
}

/// What it still has is given back when the actor's state is destroyed, after requests to it have failed.
void connection::quit() {
  if (!std::exchange(quits_, true))
    ending_.begin();
  self_->quit();
}

void connection::take(next what) {
  if (what == next::say_goodbye)
    end(connection_life::shutting_down());
  else if (what == next::finish)
    finish();
  else if (what == next::quit)
    quit();
}

result<void> connection::greeted(std::string client_name, bool observes) {
  assert(life_.now() == connection_phase::handshake); // so hello's notices are sent once
  const auto& limits = environment_->limits;
  auto leaves = environment_->clients->admit(record_->id, observes, {limits.connections_max, limits.groups});
  if (!leaves) {
    environment_->client_probe->refused(environment_->clients->drains() ? metrics::refusal::draining
                                                                        : metrics::refusal::connections_max);
    return tl::unexpected(leaves.error());
  }
  if (*leaves)
    caf::anon_send((*leaves)->actor, leave_notice{});
  life_.greeted(observes);
  show_phase();
  deadlines_.moved_on();
  record_->set_name(std::move(client_name));
  channel_->set_frame_bytes_max(protocol::frame_bytes_max);
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
    case io_tag::bell: on_bell(done.result); return;
    default: return;
  }
}

void connection::on_received(int32_t bytes) {
  uint64_t before = channel_->received_bytes;
  auto open = channel_->received(bytes);
  environment_->client_probe->received(channel_->received_bytes - before);
  if (life_.ends())
    return;
  pump();
  if (life_.ends())
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
  if (channel_->sending())
    expect_reading(environment_->now());
  else
    deadlines_.took(environment_->now());
  if (open && channel_->waits())
    return; // at the end of the turn
  auto follows = life_.sent(open, channel_->sending(), requests_.empty());
  if (follows == next::go_on)
    pump();
  else
    take(follows);
}

/// Sends what was answered. Most of it the socket takes at once; then requests that had to wait for credit have it.
void connection::end_turn() {
  std::vector<uint64_t> answered;
  while (channel_->waits()) {
    uint64_t before = channel_->sent_bytes;
    answered.clear();
    channel_->send_line(answered, life_.ends());
    environment_->client_probe->sent(channel_->sent_bytes - before);
    for (uint64_t id : answered)
      answer_sent(id);
    if (channel_->sending()) {
      expect_reading(environment_->now());
      break;
    }
    take(life_.sent(true, false, requests_.empty()));
    if (life_.reads() && (!waiting_.empty() || !channel_->receiving()))
      pump();
  }
  in_turn_ = false;
}

/// The process has ended, even if others have the socket open: release everything.
void connection::on_peer_exit() {
  holdings_.client_ended();
  life_.process_ended();
  show_phase();
  quit();
}

void connection::on_hang_up(int32_t events) {
  if (channel_->hung_up(events))
    take(life_.hung_up((events & POLLHUP) != 0, channel_->receiving()));
}

void connection::serve(protocol::frame& frame, std::optional<clock::time_point> arrived) {
  auto asked = arriving(frame, requests_.contains(frame.request_id));
  if (auto why = violation_of(asked, life_.now()); why.code != errc::ok) {
    violation(frame, why);
    return;
  }
  request what;
  try {
    what = begin(frame, arrived ? *arrived : environment_->now());
  } catch (const std::bad_alloc&) {
    refuse_unbegun(frame);
    return;
  }
  if (auto refused = refusal_of(asked, life_.now(), life_.observes())) {
    if (refused->malformed)
      refuse_frame(what, frame, refused->why);
    else
      refuse_unread(what, frame, metrics::refusal::draining, refused->why);
    return;
  }
  // A request that needs more memory than there is must not take the connection's others with it.
  try {
    start(what, frame);
  } catch (const std::bad_alloc&) {
    refuse(what, no_memory_for(what.kind));
  }
}

void connection::start(const request& what, protocol::frame& frame) {
  if (idle_requests_.empty())
    idle_requests_.emplace_back(*this);
  serving_.splice(serving_.end(), idle_requests_, idle_requests_.begin());
  auto at = std::prev(serving_.end());
  static_cast<request&>(*at) = what;
  at->serve(*find_verb(frame.kind), frame, at);
}

void connection::served(std::list<client_request>::iterator at) {
  at->clear();
  idle_requests_.splice(idle_requests_.begin(), serving_, at);
}

connection::request connection::begin(const protocol::frame& frame, clock::time_point arrived) {
  arm_timer(arrived + environment_->limits.request_deadline);
  request what{frame.request_id, frame.kind, nullptr};
  what.context = requests_.begin(what.id, what.kind, frame.body.size() + protocol::header_bytes, arrived);
  what.context->group = environment_->group->number;
  record_->requests_in_flight = static_cast<uint32_t>(requests_.size());
  ++record_->requests;
  environment_->request_probe->started(static_cast<size_t>(what.kind));
  return what;
}

/// There is no memory to remember it.
void connection::refuse_unbegun(const protocol::frame& frame) {
  auto refusal = channel_->builder();
  protocol::write_error(*refusal, frame.request_id, no_memory_for(frame.kind));
  channel_->send({std::move(refusal), {}, 0}, in_turn_);
}

void connection::refuse_frame(const request& what, const protocol::frame& frame, const error& why) {
  if (life_.now() == connection_phase::handshake)
    violation(frame, why);
  else
    refuse_unread(what, frame, metrics::refusal::malformed, why);
}

/// Its verb does not get it.
void connection::refuse_unread(const request& what, const protocol::frame& frame, metrics::refusal as,
                               const error& why) {
  environment_->client_probe->refused(as);
  refuse_unserved(what, frame, why);
}

void connection::refuse_unserved(const request& what, const protocol::frame& frame, const error& why) {
  refuse(what, why);
  if (frame.kind == protocol::kind::lookup)
    verbs::lookup_refused(*this, what, frame.body);
}

void connection::violation(const protocol::frame& frame, const error& why) {
  environment_->client_probe->refused(metrics::refusal::malformed);
  end(with_frame(why, frame));
}

// ---- answers ----

void connection::answer(const request& what, errc outcome, std::unique_ptr<protocol::frame_builder> frame,
                        std::vector<unique_fd> descriptors) {
  if (life_.ends())
    return; // the reason is its last frame
  auto now = environment_->now();
  auto latency = requests_.answer(what.id, what.context, now);
  if (!latency)
    return;
  environment_->request_probe->finished(static_cast<size_t>(what.kind), outcome, *latency);
  ++record_->answered;
  record_->latency_ns += static_cast<uint64_t>(latency->count());
  log_.answered(what.id, what.kind, outcome, *latency, what.context->trace);
  if (outcome == errc::busy)
    environment_->client_probe->refused(metrics::refusal::queue_full);
  if (frame->bytes().empty())
    protocol::write_error(
        *frame, what.id,
        {errc::unsupported, "the answer does not fit in a frame; request fewer chunks at a time"});
  give_back_room(requests_.take_back_objects(what.id));
  requests_.charge(what.id, frame->bytes().size());
  account_memory(gate_.unfinished_bytes());
  if (!in_turn_ && !channel_->sending())
    expect_reading(now);
  channel_->send({std::move(frame), std::move(descriptors), what.id}, in_turn_);
}

/// The client is expected to take what is being sent.
void connection::expect_reading(clock::time_point now) {
  deadlines_.took(now);
  arm_timer(deadlines_.next(now, true));
}

void connection::refuse(const request& what, const error& why) {
  auto frame = channel_->builder();
  protocol::write_error(*frame, what.id, with_trace(why, what.context->trace));
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
  return outcome != request_table::cancelled::unknown || cancel_waiting(id, why);
}

/// A request that has not begun is answered at once.
bool connection::cancel_waiting(request_id id, errc why) {
  auto taken = waiting_.take(id);
  if (!taken)
    return false;
  auto what = begin(taken->frame, taken->arrived);
  what.context->ended = why;
  refuse_unserved(what, taken->frame, {why, "the request ended before there was credit to begin it"});
  discard(std::move(taken->frame));
  return true;
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

/// What waits for the teardown, for room or for a counter goes on, to refuse its request; it does nothing when its turn comes.
void connection::resume_ended() {
  for (auto& work : after_teardown_.take_ended())
    self_->send(self_, resume_notice{std::move(work)});
  refuse_roomless();
  refuse_ended_waits();
}

void connection::end(const error& why) {
  if (!life_.close())
    return;
  show_phase();
  gate_.pass_on();
  roomless_.clear();
  gate_.takes_no_objects();
  log_.end("ends: " + why.text, environment_->now());
  auto frame = channel_->builder();
  protocol::write_error(*frame, 0, why);
  channel_->send({std::move(frame), {}, 0});
  channel_->watch_hang_up();
  end_by(environment_->limits.handshake_deadline); // for a client that does not read
}

void connection::on_leave() {
  if (auto why = life_.leave())
    end(*why);
}

/// Releases everything except what a living client may still be reading through its mapping.
void connection::close() {
  give_back_room(requests_.objects_taken());
  roomless_.clear();
  gate_.takes_no_objects();
  for (auto each = serving_.begin(); each != serving_.end();)
    (each++)->stop(); // one that is running ends when it suspends
  bool any = requests_.end_all(environment_->now(), [&](protocol::kind verb, auto age) {
    environment_->request_probe->finished(static_cast<size_t>(verb), errc::cancelled, age);
  });
  if (any)
    sweep();
  if (environment_->teardown && !waiting_.empty())
    environment_->teardown->destroy(std::move(waiting_)); // descriptors, see `discard`
  waiting_.clear();
  bell_.take_down();
  for (size_t each = waits_.take_all().size(); each != 0; --each)
    environment_->client_probe->awaits_no_counter();
  account_memory(0);
  gate_.pass_on();
  if (holdings_.present_staging() != nullptr)
    environment_->client_probe->unstages(environment_->limits.staging_bytes);
  if (!std::exchange(owner_ended_, true))
    caf::anon_send(group().group, end_owner_notice{record_->id});
  for (const auto& ended : holdings_.close())
    lease_ended(ended);
  record_->requests_in_flight = 0;
  show();
  channel_->shut();
  if (std::exchange(flooded_, false))
    channel_->keep_while_sending(trim_at_end(environment_->teardown));
}

/// The socket is closed. Memory that a living process may still be reading is kept until it dies or confirms.
void connection::finish() {
  if (life_.now() == connection_phase::quarantined)
    return; // an answer that was being sent when the socket closed
  close();
  bool kept = life_.quarantine(holdings_.leases() != 0 || holdings_.keeps_events());
  show_phase();
  if (!kept) {
    quit();
    return;
  }
  environment_->clients->quarantine(record_->id);
  count_quarantine();
  log_.end("closed its socket; objects that it may be reading are kept until it ends", environment_->now());
}

void connection::on_confirmed(pid_t pid) {
  auto follows = life_.confirmed(pid);
  if (follows == next::quit)
    holdings_.client_ended();
  take(follows);
}

void connection::on_drain() {
  auto follows = life_.drain(requests_.empty());
  show_phase();
  for (request_id id : requests_.of(protocol::kind::subscribe)) // nothing else may ever answer them
    cancel(id, errc::busy);
  take(follows);
}

} // namespace terrace::actors
