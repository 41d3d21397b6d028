// What all connections of a door for Redis clients share.
#pragma once

#include "actors/connection/connection.hpp"
#include "metrics/resp_probe.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace::actors {

/// Set up before the door is open; safe on any thread.
struct door_environment {
  std::shared_ptr<const connection_environment>
      group;            ///< the group's limits, clients and logs are those of its other clients
  std::string password; ///< empty: no password is needed
  uint64_t value_bytes_max = 512ULL << 20;
  std::shared_ptr<metrics::resp_probe> probe;
};
using door_ptr = std::shared_ptr<const door_environment>;

} // namespace terrace::actors
