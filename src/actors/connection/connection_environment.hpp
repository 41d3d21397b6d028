// What all connections of a trust group share.
#pragma once

#include "actors/group/trust_group.hpp"
#include "actors/interfaces.hpp"
#include "base/idle_pool.hpp"
#include "connection/client_directory.hpp"
#include "connection/client_environment.hpp"
#include "connection/client_state.hpp"

#include <chrono>
#include <memory>

namespace terrace::actors {

// A client as the daemon knows it: what status shows of it, and how to reach its connection.

struct client_record : client_state {
  connection_actor actor;
};
using client_ptr = std::shared_ptr<client_record>;
using connected_clients = client_directory<client_record>;

using clock = std::chrono::steady_clock;

/// Set up before the group serves; safe on any thread.
struct connection_environment : client_environment {
  group_ptr group;
  std::shared_ptr<connected_clients> clients;
  gpu_registry_actor devices; ///< null: none
};

/// Actors that have answered and can be used again; they end with their connection. Starting one takes a few
/// microseconds, and so does its end, which wakes CAF's clock thread.
using actor_pool = idle_pool<caf::actor>;

} // namespace terrace::actors
