#include "actors/connection/listener_actor.hpp"

#include "actors/connection/frame_channel.hpp"
#include "actors/resp/redis_connection.hpp"
#include "connection/handshake.hpp"
#include "runtime/io_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

namespace terrace {

namespace {

constexpr int backlog = 1024;

tl::unexpected<error> failed(const std::string& text, const std::string& path) {
  errc code = errno == EACCES || errno == EPERM ? errc::denied : errc::internal;
  return fail(code, "cannot " + text + " " + path + ": " + std::strerror(errno));
}

/// True if the process listening at the other end of `probe` has ended. The kernel closes a ring after the
/// end of its process, so for a moment the socket of a killed daemon still accepts connections.
bool listener_has_ended(const unique_fd& probe) {
  ucred listener{};
  socklen_t length = sizeof listener;
  if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &listener, &length) != 0 || listener.pid <= 0)
    return false;
  unique_fd process(static_cast<int>(::syscall(SYS_pidfd_open, listener.pid, 0)));
  if (!process)
    return errno == ESRCH;
  pollfd ended{process.get(), POLLIN, 0}; // also a process that its parent has not waited for
  return ::poll(&ended, 1, 0) == 1;
}

/// Removes a stale socket file: only one that refuses connections, or whose listener has ended, is stale.
result<void> remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    return errno == ENOENT ? result<void>() : failed("look at", path);
  if (!S_ISSOCK(status.st_mode))
    return fail(errc::bad_request, path + " exists and is not a socket; choose another path");
  unique_fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  bool connected = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (connected ? !listener_has_ended(probe) : errno == EAGAIN)
    return fail(errc::busy, "another process listens on " + path + "; stop it, or choose another path");
  if (!connected && errno != ECONNREFUSED)
    return failed("probe", path);
  return ::unlink(path.c_str()) == 0 ? result<void>() : failed("remove the stale socket", path);
}

} // namespace

result<unique_fd> open_listening_socket(const std::string& path, uint32_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(errc::bad_request, "the socket path " + path + " has " + std::to_string(path.size()) +
                                       " bytes; at most " + std::to_string(sizeof address.sun_path - 1) +
                                       " are possible");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (auto clear = remove_stale(path, address); !clear)
    return tl::unexpected(clear.error());
  unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket)
    return failed("make a socket for", path);
  // Nobody may connect between bind and chmod: the socket is created for its owner only, and listens last.
  mode_t before = ::umask(0177);
  int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(before);
  if (bound != 0)
    return failed("bind", path);
  if (::chmod(path.c_str(), mode) != 0 || ::listen(socket.get(), backlog) != 0)
    return failed("listen on", path);
  return socket;
}

result<listening_port> open_listening_port(const std::string& host, uint16_t port) {
  std::string where = host + " port " + std::to_string(port);
  sockaddr_storage address{};
  socklen_t length = sizeof(sockaddr_in);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    length = sizeof(sockaddr_in6);
  } else {
    return fail(errc::bad_request, host + " is no numeric address");
  }
  unique_fd socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket)
    return failed("make a socket for", where);
  int one = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one,
               sizeof one); // connections of an earlier daemon linger
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(socket.get(), backlog) != 0) {
    if (errno == EADDRINUSE)
      return fail(errc::busy,
                  where + " is taken by another process; stop it, or choose another port in [[resp]]");
    return failed("listen on", where);
  }
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  uint16_t given = ntohs(address.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
  return listening_port{std::move(socket), given};
}

} // namespace terrace

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
    if (auto line = environment.refusals->admit("refused uid " + std::to_string(who->uid) + " (pid " +
                                                    std::to_string(who->pid) + ") on " + with.path,
                                                environment.now()))
      environment.log(*line);
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
