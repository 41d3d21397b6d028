#include "actors/resp/redis_connection.hpp"

#include "actors/resp/value_transfer.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <cassert>
#include <poll.h>
#include <utility>

namespace terrace::actors {

namespace {

constexpr auto never = clock::time_point::max();

/// A value is received in parts of this size, so that it shows whether the client continues.
constexpr size_t value_part_bytes = 1 << 20;
/// Of what comes behind a violation, so much is received at a time.
constexpr size_t dropped_bytes = 64 << 10;

} // namespace

redis_connection::redis_connection(self_pointer self, unique_fd socket, client_ptr record,
                                   redis_connection_ptr redis)
    : self_(self), redis_(std::move(redis)), environment_(*redis_->group), record_(std::move(record)),
      log_(record_, {environment_.log, environment_.detail, environment_.ends, environment_.leases}),
      in_(std::make_shared<incoming>()), out_(std::make_shared<outgoing>()),
      talk_(redis_->password, static_cast<uint64_t>(record_->id)) {
  in_->socket = out_->socket = std::make_shared<unique_fd>(std::move(socket));
  due_.fill(never);
}

redis_connection::~redis_connection() {
  if (context_) {
    context_->ended = errc::cancelled;
    sweep();
  }
  ::shutdown(in_->socket->get(), SHUT_RDWR);
  environment_.clients->remove(record_->id);
  environment_.client_probe->disconnected();
}

void redis_connection::on_begin() {
  environment_.client_probe->connected();
  record_->state = "open";
  watch_hang_up(POLLRDHUP);
  if (!talk_.admitted())
    await_by(for_admission, environment_.now() + environment_.limits.handshake_deadline);
  self_->request(environment_.group->group, caf::infinite, open_space_request{resp::value_space()})
      .then(
          [this](const open_space_answer& answer) {
            if (answer.failure.code != errc::ok)
              return violate("the values' space cannot be opened: " + answer.failure.text);
            space_ = answer.opened;
            receive();
          },
          [this](const caf::error&) { self_->quit(); });
}

void redis_connection::on_io_done(const runtime::io_done& done) {
  switch (done.tag) {
    case io_tag::receive: return on_received(done.result);
    case io_tag::send: return on_sent(done.result);
    case io_tag::timer: return on_timer();
    case io_tag::hang_up: return on_hang_up(done.result);
    default: return;
  }
}

// ---- in ----

void redis_connection::receive() {
  assert(!receiving_);
  if (eof_ || ends_)
    return;
  receiving_ = true;
  auto area = in_->reader.write_area();
  in_->areas[0] = {area.data(), area.size()};
  in_->message = {};
  in_->message.msg_iov = in_->areas.data();
  in_->message.msg_iovlen = 1;
  runtime::io_request request;
  request.code = runtime::io_code::recvmsg;
  request.fd = in_->socket->get();
  request.message = &in_->message;
  request.keep_alive = in_;
  self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_), io_tag::receive);
  bool rest = in_->reader.in_command();
  await_by(for_rest, rest ? environment_.now() + environment_.limits.request_deadline : never);
}

/// Receives into `into`; the end of the line after the value's last byte goes into the reader.
void redis_connection::receive_value(std::span<std::byte> into, keep_alive owner) {
  assert(!receiving_);
  receiving_ = true;
  bool last = into.size() <= value_part_bytes && into.size() == in_->reader.value_left();
  auto part = into.first(std::min(into.size(), value_part_bytes));
  auto area = in_->reader.write_area();
  in_->areas[0] = {part.data(), part.size()};
  in_->areas[1] = {area.data(), resp::end_of_value.size()};
  in_->message = {};
  in_->message.msg_iov = in_->areas.data();
  in_->message.msg_iovlen = last ? 2 : 1;
  in_->owner = std::move(owner);
  runtime::io_request request;
  request.code = runtime::io_code::recvmsg;
  request.fd = in_->socket->get();
  request.message = &in_->message;
  request.flags = MSG_WAITALL;
  request.keep_alive = in_;
  self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_), io_tag::receive);
  await_by(for_rest, environment_.now() + environment_.limits.request_deadline);
}

void redis_connection::on_received(int32_t bytes) {
  receiving_ = false;
  if (drops_rest_) {
    if (bytes > 0 || bytes == -EINTR || bytes == -EAGAIN)
      drop_rest();
    else
      self_->quit();
    return;
  }
  await_by(for_rest, never); // until it receives again: meanwhile the client waits for us
  if (bytes < 0 && bytes != -EINTR && bytes != -EAGAIN) {
    self_->quit();
    return;
  }
  auto count = static_cast<uint64_t>(std::max(bytes, 0));
  eof_ = bytes == 0;
  environment_.client_probe->received(count);
  if (in_->reader.value_left() != 0) { // received into a value
    if (eof_) {
      self_->quit(); // drops what it has received of the value
      return;
    }
    received_value_ = static_cast<size_t>(std::min<uint64_t>(count, in_->areas[0].iov_len));
    in_->reader.value_received(received_value_);
    in_->reader.commit(static_cast<size_t>(count) - received_value_);
    in_->owner = nullptr;
    auto came = std::move(value_came_);
    if (came)
      came->set();
    return;
  }
  in_->reader.commit(static_cast<size_t>(count));
  pump();
}

void redis_connection::watch_hang_up(uint32_t events) {
  runtime::io_request request;
  request.code = runtime::io_code::poll;
  request.fd = in_->socket->get();
  request.events = events;
  request.keep_alive = in_;
  self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_), io_tag::hang_up);
}

/// A client that has stopped sending may still read.
void redis_connection::on_hang_up(int32_t events) {
  if (events > 0 && (events & (POLLHUP | POLLERR)) == 0)
    watch_hang_up(0);
  else if (events > 0 && !receiving_) // otherwise the receive reports it, after everything that came before
    self_->quit();
}

// ---- the order of things ----

/// Serves what has come, and receives more when all of it is served.
void redis_connection::pump() {
  if (pumping_ || serving_ || guessed_ || !space_)
    return; // pump is called again later
  pumping_ = true;
  while (!serving_ && !ends_ && !guessed_ && replies_.has_room()) {
    auto batch = std::make_shared<redis_batch>();
    collect(*batch);
    bool value = batch->empty() && step_ && step_->what == resp::reader_step::kind::value;
    if (batch->empty() && violation_)
      violate(violation_->text);
    if (batch->empty() && !value)
      break;
    if (!value && serve_at_once(*batch))
      continue;
    serving_ = true;
    begin_context();
    progress_ = value ? serve_value() : serve(std::move(batch));
    progress_.start();
  }
  pumping_ = false;
  send();
  if (!serving_ && !receiving_ && !ends_ && !guessed_ && replies_.has_room() && !step_)
    receive();
  finish_if_done();
}

void redis_connection::served() {
  context_ = nullptr;
  due_[for_serving] = never;
  serving_ = false;
  pump();
}

void redis_connection::finish_if_done() {
  bool over = ends_ || eof_ || (drains_ && !in_->reader.in_command());
  if (!over || serving_ || sending_ || !replies_.empty())
    return;
  if (out_->quiet.in_flight)
    out_->quiet.announced = sending_ = true; // the socket is shut after it
  else if (violation_ && !eof_ && !receiving_)
    drop_rest();
  else
    self_->quit();
}

/// A client that still sends gets the reason before the end: closing a socket with bytes that nobody has read would reset
/// the connection. The client has the time of a handshake for the rest.
void redis_connection::drop_rest() {
  if (!std::exchange(drops_rest_, true)) {
    ::shutdown(in_->socket->get(), SHUT_WR);
    in_->dropped.resize(dropped_bytes);
    await_by(for_rest, environment_.now() + environment_.limits.handshake_deadline);
  }
  receiving_ = true;
  in_->areas[0] = {in_->dropped.data(), in_->dropped.size()};
  in_->message = {};
  in_->message.msg_iov = in_->areas.data();
  in_->message.msg_iovlen = 1;
  runtime::io_request request;
  request.code = runtime::io_code::recvmsg;
  request.fd = in_->socket->get();
  request.message = &in_->message;
  request.keep_alive = in_;
  self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_), io_tag::receive);
}

void redis_connection::violate(const std::string& text) {
  ends_ = true;
  environment_.client_probe->refused(metrics::refusal::malformed);
  log_.end("ends: " + text, environment_.now());
  resp::append_error(replies_.text(), "ERR", text);
  send();
}

void redis_connection::on_drain() {
  drains_ = true;
  finish_if_done();
}

void redis_connection::on_leave() { self_->quit(); }

// ---- time ----

/// Whoever guesses has to wait for each answer, so that passwords cannot be tried one after the other.
void redis_connection::on_guess() {
  auto now = environment_.now();
  guessed_ = true;
  redis_->probe->guessed();
  log_.end("gave a wrong password", now);
  // Whoever has to give the password in a short time may be mistaken once.
  await_by(for_guess,
           now + std::min<clock::duration>(guess_delay, environment_.limits.handshake_deadline / 4));
}

void redis_connection::begin_context() {
  context_ = std::make_shared<request_context>();
  context_->work.begin();
  context_->group = environment_.group->number;
  context_->connection = record_->id;
  await_by(for_serving, environment_.now() + environment_.limits.request_deadline);
}

/// The timer fires at the earliest time ever asked for, and checks again, because times move on with every
/// command.
void redis_connection::await_by(size_t what, clock::time_point at) {
  due_[what] = at;
  if (at >= timer_at_)
    return;
  timer_at_ = at;
  runtime::io_request operation;
  operation.code = runtime::io_code::timeout;
  operation.after = std::max(at - environment_.now(), clock::duration(0));
  self_->port().submit(std::move(operation), caf::actor_cast<caf::strong_actor_ptr>(self_), io_tag::timer);
}

void redis_connection::on_timer() {
  auto now = environment_.now();
  if (now < timer_at_ && timer_at_ != never)
    return; // an earlier one was set instead
  timer_at_ = never;
  for (size_t what : {for_admission, for_rest, for_sending})
    if (due_[what] <= now) {
      constexpr const char* why[] = {"it did not give the password in time",
                                     "a command began and did not end", "it does not read"};
      if (!drops_rest_) // otherwise the reason has been logged
        log_.end(std::string("ends: ") + why[what], now);
      self_->quit();
      return;
    }
  if (due_[for_serving] <= now && context_) {
    due_[for_serving] = never;
    context_->ended = errc::deadline;
    sweep();
    on_turn();
  }
  if (due_[for_guess] <= now)
    due_[for_guess] = never;
  auto next = *std::min_element(due_.begin(), due_.end());
  if (next != never)
    await_by(static_cast<size_t>(std::min_element(due_.begin(), due_.end()) - due_.begin()), next);
  if (guessed_ && due_[for_guess] == never) {
    guessed_ = false;
    send();
    pump();
  }
}

/// Answers whatever waits for ended requests.
void redis_connection::sweep() {
  for (const tier_handle& tier : environment_.group->tiers()) {
    caf::anon_send(tier.tier, sweep_notice{});
    if (tier.write_through)
      caf::anon_send(tier.write_through, sweep_notice{});
  }
}

// ---- the actor ----

namespace {

struct redis_seed {
  unique_fd socket;
  client_ptr record;
  redis_connection_ptr redis;
};

redis_connection::interface::behavior_type redis_behavior(redis_connection::self_pointer self,
                                                          const std::shared_ptr<redis_seed>& seed) {
  self->state.work =
      std::make_unique<redis_connection>(self, std::move(seed->socket), seed->record, seed->redis);
  return {
      [self](begin_notice) { self->state.work->on_begin(); },
      [self](const runtime::io_done& done) { self->state.work->on_io_done(done); },
      [](const resume_notice& notice) { (*notice.work)(); },
      [self](drain_notice) { self->state.work->on_drain(); },
      [self](leave_notice) { self->state.work->on_leave(); },
      [](const revoke_request&) { return revoke_answer{}; }, // Redis clients have no leases
      [](check_client_request) { return check_client_answer{}; },
      [](const confirm_notice&) {}, // nor mapped memory
  };
}

} // namespace

connection_actor spawn_redis_connection(caf::actor_system& system, const runtime::home& home,
                                        unique_fd socket, const peer& who, connection_id id,
                                        redis_connection_ptr redis) {
  auto record = std::make_shared<client_record>();
  record->id = id;
  record->group = redis->group->group->name;
  record->pid = who.pid;
  record->uid = who.uid;
  record->gid = who.gid;
  record->since = redis->group->now();
  record->set_name("resp");
  auto clients = redis->group->clients;
  auto seed = std::make_shared<redis_seed>(redis_seed{std::move(socket), record, std::move(redis)});
  auto handle = runtime::spawn_homed(system, home, redis_behavior, seed);
  record->actor = handle;
  clients->add(record);
  caf::anon_send(handle,
                 // Sent after it is in the directory, from which it removes itself at its end.
                 begin_notice{});
  return handle;
}

// Batches that need no answer from another actor: commands that need no cache, and small values in host
// memory.

bool redis_connection::serve_at_once(const redis_batch& batch) {
  switch (batch.what) {
    case redis_batch::work::none:
      for (const item& one : batch.items)
        reply_item(one, {});
      return true;
    case redis_batch::work::read: return read_at_once(batch);
    default: return false;
  }
}

/// Reads the values; the tier is told of the use afterwards.
bool redis_connection::read_at_once(const redis_batch& batch) {
  if (told_ == told_max)
    return false;
  const tier_handle& host = environment_.group->tiers().front();
  std::vector<uint32_t> copies(batch.objects->size(), 0);
  for (const item& one : batch.items)
    if (one.what == item::kind::value || one.what == item::kind::element)
      ++copies[one.key];
  if (!small_.read(*host.index, *environment_.group->memory, batch.objects->keys, copies))
    return false;
  for (const item& one : batch.items) {
    if (one.what == item::kind::count)
      ++sum_;
    else if (one.what == item::kind::value || one.what == item::kind::element) {
      redis_->probe->found(small_.of(one.key).size());
      resp::append_value(replies_.text(), small_.of(one.key));
    } else {
      reply_item(one, {});
    }
  }
  host.probe->hit(small_.ids().size());
  assert(told_ < told_max);
  ++told_;
  self_->send(host.tier, access_notice{small_.ids()});
  return true;
}

} // namespace terrace::actors
