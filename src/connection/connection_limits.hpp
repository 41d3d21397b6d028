// Bounds and time limits of a connection.
#pragma once

#include <chrono>
#include <cstdint>

namespace terrace {

struct connection_limits {
  uint32_t credit_requests = 256;
  uint64_t credit_bytes = 32ULL << 20;
  uint64_t staging_bytes = 256ULL << 20;
  uint32_t reservations_max = 4096;
  uint32_t spaces_max = 4096; ///< open spaces
  uint32_t regions_max = 64;
  uint64_t region_bytes = 2ULL << 40;
  uint32_t leases_max = 65536;
  uint32_t lease_objects_max = 4'194'304; ///< limit for all leases together; an object counts once per lease
  uint64_t group_bytes = 1ULL << 30;      ///< limit for the requests of all connections of a group
  uint32_t connections_max = 1024;        ///< clients of the whole daemon
  size_t groups = 1;                      ///< trust groups of the daemon
  std::chrono::milliseconds request_deadline{30000};      ///< deadline of requests without their own
  std::chrono::milliseconds request_deadline_max{600000}; ///< a later deadline is reduced to this one
  std::chrono::milliseconds handshake_deadline{
      10000}; ///< time until hello, and for a client to read why its connection ends
  std::chrono::milliseconds lease_warn_after{60000};
  uint32_t pin_percent = 25;     ///< share of host memory; pins in all tiers may hold this much together
  uint32_t session_percent = 25; ///< share of host memory that held sessions may hold together
};

} // namespace terrace
