// The actor around `connection`: it lives on its home worker and turns completions and messages into calls.
#pragma once

#include "actors/connection/connection.hpp"

namespace terrace::actors {

/// No new requests; the connection ends when those in flight are answered.
struct drain_notice {};

/// From a new connection of the process `pid`: it touches nothing of this one any more.
struct confirm_notice {
  pid_t pid = 0;
};

/// From a connection to itself: goes on with work that it does in slices.
struct resume_notice {
  std::shared_ptr<std::function<void()>> work;
};

/// Spawns the connection at that home; it enters itself into the directory before this returns.
caf::actor spawn_connection(caf::actor_system& system, const runtime::home& home, unique_fd socket, peer who,
                            connection_id id, std::shared_ptr<const connection_environment> environment);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::drain_notice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::confirm_notice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::resume_notice)
