#include "actors/connection/listener_actor.hpp"

#include "actors/connection/frame_channel.hpp"
#include "actors/resp/redis_connection.hpp"
#include "connection/handshake.hpp"
#include "runtime/io_port.hpp"

#include <sys/socket.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

namespace terrace::actors {

namespace {

constexpr uint64_t accept_tag = 1;
constexpr uint64_t retry_tag = 2;
constexpr auto retry_after =
    std::chrono::milliseconds(100); ///< without descriptors or memory, accept fails immediately

struct listener_state {
  const char* name = "listener";
  listener_arguments with;
  bool draining = false;
  bool cannot_accept = false; ///< told since the last connection
  bool in_ring = false;       ///< an accept, or the timer before the next one
};

using listener_interface = listener_actor::extend<caf::reacts_to<runtime::io_done>>;
using listener_pointer = caf::stateful_actor<listener_state, runtime::homed<listener_interface::base>>*;

void accept_next(listener_pointer self) {
  assert(!self->state.in_ring);
  self->state.in_ring = true;
  runtime::io_request request;
  request.code = runtime::io_code::accept;
  request.fd = self->state.with.socket->get();
  request.flags = SOCK_CLOEXEC;
  request.keep_alive = self->state.with.socket;
  self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), accept_tag);
}

/// As far as the client's socket accepts it.
void turn_away_redis_client(const unique_fd& socket) {
  constexpr std::string_view reply = "-NOPERM this user may not connect here\r\n";
  (void) !::send(socket.get(), reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void admit(listener_pointer self, unique_fd socket) {
  auto& with = self->state.with;
  const auto& environment = *with.environment;
  std::optional<peer> who = with.admits ? identify_peer(socket.get()) : peer{};
  if (!who)
    return;
  if (with.admits && !with.admits(who->uid, who->gid)) {
    environment.client_probe->refused(metrics::refusal::credentials);
    environment.log("refused uid " + std::to_string(who->uid) + " (pid " + std::to_string(who->pid) +
                    ") on " + with.path);
    if (with.redis)
      turn_away_redis_client(socket);
    else
      turn_away(socket, not_admitted(who->uid, who->gid, with.path));
    return;
  }
  // Clients are counted when they say hello; whoever says nothing keeps nobody out.
  if (auto leaves = environment.clients->make_room_for_silent(environment.limits.connections_max))
    caf::anon_send(leaves->actor, leave_notice{});
  int bytes = protocol::socket_buffer_bytes;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  auto id = static_cast<connection_id>(with.next_id->fetch_add(1));
  if (with.redis) {
    spawn_redis_connection(self->system(), with.place(), std::move(socket), *who, id, with.redis);
    return;
  }
  spawn_connection(self->system(), with.place(), std::move(socket), std::move(*who), id, with.environment);
}

void on_accepted(listener_pointer self, int32_t result) {
  if (result >= 0) {
    self->state.cannot_accept = false;
    admit(self, unique_fd(result));
  }
  if (self->state.draining)
    return;
  if (result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM) {
    if (!self->state.cannot_accept)
      self->state.with.environment->log(
          std::string("cannot accept connections: ") + std::strerror(-result) +
          "; it is tried again until it works; raise RLIMIT_NOFILE (ulimit -n, LimitNOFILE= in systemd)");
    self->state.cannot_accept = true;
    runtime::io_request request;
    request.code = runtime::io_code::timeout;
    request.after = retry_after;
    self->state.in_ring = true;
    self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), retry_tag);
    return;
  }
  accept_next(self);
}

listener_interface::behavior_type listener_behavior(listener_pointer self,
                                                    const std::shared_ptr<listener_arguments>& arguments) {
  self->state.with = *arguments;
  accept_next(self);
  return {
      [self](const runtime::io_done& done) {
        self->state.in_ring = false;
        if (done.tag == accept_tag)
          on_accepted(self, done.result);
        else
          accept_next(self);
      },
      [self](drain_notice) {
        self->state.draining = true;
        self->quit(); // cancels the accept in the ring
      },
  };
}

} // namespace

listener_actor spawn_listener(caf::actor_system& system, const runtime::home& home,
                              listener_arguments arguments) {
  return runtime::spawn_homed(system, home, listener_behavior,
                              std::make_shared<listener_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
