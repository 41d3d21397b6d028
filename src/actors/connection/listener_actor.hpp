// LISTENER: one listening socket. Checks the credentials of connecting peers and spawns a connection on the
// least busy worker. Ends on `drain_notice`.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/resp/redis_connection.hpp"

#include <functional>

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
