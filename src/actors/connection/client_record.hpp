// A client as the daemon knows it: what status shows of it, and how to reach its connection.
#pragma once

#include "actors/interfaces.hpp"
#include "connection/client_directory.hpp"
#include "connection/client_state.hpp"

namespace terrace::actors {

struct client_record : client_state {
  connection_actor actor;
};
using client_ptr = std::shared_ptr<client_record>;
using connected_clients = client_directory<client_record>;

} // namespace terrace::actors
