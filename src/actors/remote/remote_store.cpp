#include "actors/remote/remote_store.hpp"

#include "base/random_id.hpp"
#include "runtime/io_port.hpp"

#include <caf/actor_system.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace terrace::actors {

namespace {

enum remote_tag : uint64_t { store_connected = 1, store_received, store_sent, store_tick, store_retry };

auto remote_now() { return std::chrono::steady_clock::now(); }

} // namespace

// ---- the service ----

std::string remote_service::reason() const {
  std::lock_guard lock(mutex_);
  return why_;
}

std::string remote_service::notice() const {
  std::lock_guard lock(mutex_);
  return notice_;
}

void remote_service::serves() {
  {
    std::lock_guard lock(mutex_);
    why_.clear();
  }
  serves_.store(true, std::memory_order_release);
}

void remote_service::stops(std::string why) {
  serves_.store(false, std::memory_order_release);
  std::lock_guard lock(mutex_);
  why_ = std::move(why);
}

void remote_service::set_notice(std::string notice) {
  std::lock_guard lock(mutex_);
  notice_ = std::move(notice);
}

// ---- the connection ----

remote_store::remote_store(self_pointer self, remote_store_arguments arguments)
    : self_(self), with_(std::move(arguments)), random_(random_entry_key_salt().first) {
  with_.probe->degraded(true);
  connect();
}

remote_store::~remote_store() {
  if (socket_)
    ::shutdown(socket_->get(), SHUT_RDWR);
}

void remote_store::submit(runtime::io_request request, uint64_t tag) {
  self_->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self_), tag);
}

void remote_store::after(std::chrono::nanoseconds time, uint64_t tag) {
  runtime::io_request wait;
  wait.code = runtime::io_code::timeout;
  wait.after = std::max(time, std::chrono::nanoseconds(0));
  submit(std::move(wait), tag);
}

void remote_store::connect() {
  const remote::store_address& address = with_.plan.address;
  phase_ = phase::connecting;
  socket_ = std::make_shared<unique_fd>(
      ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(socket_->get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.length) != 0 &&
      errno != EINPROGRESS)
    return close(std::string("it cannot be reached: ") + std::strerror(errno));
  connecting_ = true;
  runtime::io_request poll;
  poll.code = runtime::io_code::poll;
  poll.fd = socket_->get();
  poll.events = POLLOUT;
  poll.keep_alive = socket_;
  connect_id_ =
      self_->port().submit(std::move(poll), caf::actor_cast<caf::strong_actor_ptr>(self_), store_connected);
  watch();
}

void remote_store::on_connected(int32_t result) {
  connecting_ = false;
  if (phase_ == phase::closing)
    return lose();
  int failure = result < 0 ? -result : 0;
  socklen_t length = sizeof failure;
  if (failure == 0)
    ::getsockopt(socket_->get(), SOL_SOCKET, SO_ERROR, &failure, &length);
  if (failure != 0)
    return close(std::string("it cannot be reached: ") + std::strerror(failure));
  // The ring waits for a socket that blocks.
  ::fcntl(socket_->get(), F_SETFL, ::fcntl(socket_->get(), F_GETFL) & ~O_NONBLOCK);
  const int at_once = 1;
  if (!with_.plan.address.at_path())
    ::setsockopt(socket_->get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  ++progress_;
  phase_ = phase::greeting;
  in_ = std::make_shared<incoming>();
  out_ = std::make_shared<outgoing>();
  in_->socket = out_->socket = socket_;
  server_ = std::make_unique<remote::valkey_connection>(with_.plan.login);
  pump();
}

void remote_store::on_ready() {
  phase_ = phase::ready;
  if (breaker_.now() == remote::breaker::state::half_open)
    breaker_.trial_succeeded();
  with_.service->serves();
  with_.service->set_notice({});
  with_.probe->degraded(false);
  if (!std::exchange(warned_, {}).empty())
    with_.log("is in service again");
}

void remote_store::receive() {
  if (!server_ || receiving_ || phase_ == phase::closing)
    return;
  receiving_ = true;
  auto area = server_->receive_area();
  in_->area = {area.data(), area.size()};
  in_->message = {};
  in_->message.msg_iov = &in_->area;
  in_->message.msg_iovlen = 1;
  in_->owner = sent_.empty() ? nullptr : sent_.front();
  runtime::io_request request;
  request.code = runtime::io_code::recvmsg;
  request.fd = socket_->get();
  request.message = &in_->message;
  request.keep_alive = in_;
  submit(std::move(request), store_received);
}

void remote_store::on_received(int32_t bytes) {
  assert(receiving_);
  receiving_ = false;
  if (phase_ == phase::closing)
    return lose();
  if (bytes == 0)
    return close("it has closed the connection");
  if (bytes < 0 && bytes != -EINTR && bytes != -EAGAIN)
    return close(std::string("the connection failed: ") + std::strerror(-bytes));
  if (bytes > 0) {
    ++progress_;
    auto taken = server_->received(static_cast<size_t>(bytes));
    while (auto finished = server_->next_finished())
      finish(*finished);
    if (!taken)
      return close(taken.error().text);
  }
  if (phase_ == phase::greeting && server_->ready())
    on_ready();
  pump();
}

void remote_store::send() {
  if (!server_ || sending_ || phase_ == phase::closing || server_->outgoing().empty())
    return;
  sending_ = true;
  out_->part = server_->outgoing().begin();
  out_->message = {};
  out_->message.msg_iov = out_->part.areas.data();
  out_->message.msg_iovlen = out_->part.areas.size();
  runtime::io_request request;
  request.code = runtime::io_code::sendmsg;
  request.fd = socket_->get();
  request.message = &out_->message;
  request.flags = MSG_NOSIGNAL;
  request.keep_alive = out_;
  submit(std::move(request), store_sent);
}

void remote_store::on_sent(int32_t bytes) {
  assert(sending_);
  sending_ = false;
  out_->part = {};
  if (phase_ == phase::closing)
    return lose();
  if (bytes <= 0 && bytes != -EINTR && bytes != -EAGAIN)
    return close(std::string("the connection failed: ") + std::strerror(-bytes));
  if (bytes > 0)
    ++progress_;
  server_->outgoing().sent(static_cast<uint64_t>(std::max(bytes, 0)));
  pump();
}

/// Ends the connection. What waits is answered once the kernel has let go of its memory.
void remote_store::close(const std::string& why) {
  if (phase_ == phase::closing)
    return;
  phase_ = phase::closing;
  why_ = "the store at " + with_.plan.address.text + ": " + why;
  with_.service->stops(why_);
  with_.probe->degraded(true);
  if (why_ != warned_)
    with_.warn("is out of service: " + why_);
  warned_ = why_;
  if (connecting_)
    self_->port().cancel(connect_id_);
  ::shutdown(socket_->get(), SHUT_RDWR);
  lose();
}

void remote_store::lose() {
  if (in_kernel())
    return;
  phase_ = phase::down;
  server_.reset();
  in_.reset();
  out_.reset();
  socket_.reset();
  window_.restart();
  for (auto* steps : {&sent_, &reads_, &writes_})
    for (auto lost = std::exchange(*steps, {}); !lost.empty(); lost.pop_front())
      end(*lost.front(), move_outcome::away);
  auto now = remote_now();
  if (breaker_.now() == remote::breaker::state::half_open)
    breaker_.trial_failed(now, random_());
  else
    breaker_.failed(now, random_());
  after(breaker_.retry_at() - now, store_retry);
}

/// Looks once a second whether anything moves, as long as something should.
void remote_store::watch() {
  const bool waits = !sent_.empty() || sending_ || phase_ == phase::connecting || phase_ == phase::greeting;
  if (ticking_ || !waits || phase_ == phase::closing)
    return;
  ticking_ = true;
  seen_progress_ = progress_;
  after(silence_max, store_tick);
}

void remote_store::on_tick() {
  ticking_ = false;
  const bool waits = !sent_.empty() || sending_ || phase_ == phase::connecting || phase_ == phase::greeting;
  if (waits && phase_ != phase::closing && progress_ == seen_progress_)
    return close("it does not answer");
  watch();
}

void remote_store::on_io_done(const runtime::io_done& done) {
  switch (done.tag) {
    case store_connected: return on_connected(done.result);
    case store_received: return on_received(done.result);
    case store_sent: return on_sent(done.result);
    case store_tick: return on_tick();
    case store_retry: breaker_.begin_trial(); return connect();
    default: return;
  }
}

// ---- the actor ----

namespace {

remote_store::interface::behavior_type
remote_store_behavior(remote_store::self_pointer self,
                      const std::shared_ptr<remote_store_arguments>& arguments) {
  self->state.work = std::make_unique<remote_store>(self, std::move(*arguments));
  return {
      [](const start_journal&) {}, // the index does not outlive the daemon
      [self](const read_request& request) { return self->state.work->on_move(request, false); },
      [self](const write_request& request) { return self->state.work->on_move(request, true); },
      [self](const index_changes& changes) { self->state.work->on_changes(changes); },
      [](const forget_request& request) {
        return forget_answer{{}, request.epoch, {}};
      },
      [](const check_journal_request&) { return check_answer_texts{}; },
      [](const close_mover_request&) { return close_mover_answer{}; },
      [](register_memory) {},
      [](const add_memory&) {},
      [](const forget_memory&) { return retire_answer{}; }, // nothing refers to an empty segment
      [self](const runtime::io_done& done) { self->state.work->on_io_done(done); },
  };
}

} // namespace

disk_set_actor spawn_remote_store(caf::actor_system& system, const runtime::home& home,
                                  remote_store_arguments arguments) {
  return runtime::spawn_homed(system, home, remote_store_behavior,
                              std::make_shared<remote_store_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
