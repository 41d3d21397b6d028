// LISTENER: one listening socket. Checks the credentials of connecting peers and spawns a connection on the
// least busy worker. Ends on `drain_notice`.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/resp/redis_connection.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace terrace {

// The sockets on which the daemon listens.

/// Binds and listens. A socket file without a listener (of a killed daemon) is replaced; missing directories
/// are created. Errors: `bad_request` (path too long, or not a socket), `busy` (another daemon listens
/// there), `denied`, `internal`. Blocks on the file system: call it at start.
result<unique_fd> open_listening_socket(const std::string& path, uint32_t mode);

/// Binds and listens on a numeric address of this machine; port 0: any free one. Errors: `busy` (the port is taken),
/// `internal`.
struct listening_port {
  unique_fd socket;
  uint16_t port = 0;
};
result<listening_port> open_listening_port(const std::string& host, uint16_t port);

} // namespace terrace

namespace terrace::actors {

struct listener_arguments {
  std::shared_ptr<unique_fd> socket;
  std::string path;
  std::function<bool(uid_t uid, gid_t gid)>
      admits;                           ///< null: everybody who reaches the socket, without credentials
  std::function<runtime::home()> place; ///< of the next connection; safe on any thread
  std::shared_ptr<std::atomic<uint64_t>> next_id; ///< shared by all listeners
  std::shared_ptr<const connection_environment> environment;
  redis_connection_ptr redis; ///< of Redis clients; null: clients speak the daemon's own protocol
};

listener_actor spawn_listener(caf::actor_system& system, const runtime::home& home,
                              listener_arguments arguments);

} // namespace terrace::actors
