// What all connections of a trust group share besides its actors.
#pragma once

#include "base/detail_log.hpp"
#include "base/ids.hpp"
#include "base/line_limit.hpp"
#include "connection/connection_limits.hpp"
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
  /// Limit of log lines on ended connections.
  std::shared_ptr<shared_line_limit> ends = std::make_shared<shared_line_limit>();
};

} // namespace terrace
