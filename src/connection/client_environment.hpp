// What all connections of a trust group share besides its actors.
#pragma once

#include "base/ids.hpp"
#include "base/log_limit.hpp"
#include "connection/request_memory.hpp"
#include "memory/region_budget.hpp"
#include "memory/region_populator.hpp"
#include "memory/teardown.hpp"
#include "metrics/client_probe.hpp"
#include "metrics/device_probe.hpp"
#include "metrics/request_probe.hpp"
#include "metrics/space_table.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace {

// Bounds and time limits of a connection.

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

/// Set up before the group serves; safe on any thread.
struct client_environment {
  using clock = std::chrono::steady_clock;

  connection_limits limits;
  boot_id boot;
  clock::time_point started;
  /// Clock for deadlines and ages; tests supply their own.
  std::function<clock::time_point()> now = clock::now;
  uint32_t workers = 1;
  std::vector<std::string> ring_features;
  /// Memory of the group's requests.
  std::shared_ptr<request_memory> memory = std::make_shared<request_memory>(UINT64_MAX);
  region_budget_ptr regions; ///< budget of the group's regions; null: unlimited
  teardown_ptr teardown; ///< releases clients' memory and sockets on its thread; null: the connection does
  std::shared_ptr<region_populator> populator; ///< maps clients' memory in advance; null: the first copies do
  std::shared_ptr<metrics::client_probe> client_probe;
  std::shared_ptr<metrics::request_probe> request_probe;
  std::shared_ptr<metrics::space_table> spaces;
  std::shared_ptr<const metrics::device_board> devices_shown; ///< null: there are no devices
  std::function<void(const std::string&)> log; ///< writes one line at level `info`; safe on any thread
  detail_log detail;
  /// Sets the log level and returns the previous one; an error if the level does not exist. Null: the level
  /// cannot be changed. Safe on any thread.
  std::function<result<std::string>(const std::string& level)> set_log_level;
  /// Begins the orderly end of the daemon. Null: there is none. Safe on any thread.
  std::function<void()> shut_down;
  /// Limits of the log lines that clients can cause one after the other. Each kind has its own, so that none hides another.
  std::shared_ptr<shared_log_limit> ends = std::make_shared<shared_log_limit>(); ///< of connections
  std::shared_ptr<shared_log_limit> leases = std::make_shared<shared_log_limit>();
  std::shared_ptr<shared_log_limit> refusals = std::make_shared<shared_log_limit>(); ///< of users
};

} // namespace terrace
