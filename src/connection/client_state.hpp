// The state of a client, as status shows it.
#pragma once

#include "base/ids.hpp"
#include "tier/search/lease_ledger.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include <sys/types.h>

namespace terrace {

/// The state of one connection. The connection writes it, and status reads it on any thread.
struct client_state {
  connection_id id{};
  std::string group;
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::chrono::steady_clock::time_point since; ///< time of connecting
  account_ptr leased; ///< host memory that its leases and readings hold; null in tests

  std::atomic<uint32_t> requests_in_flight{0};
  std::atomic<uint32_t> regions{0};
  std::atomic<uint64_t> region_bytes{0};
  std::atomic<uint32_t> leases{0};
  std::atomic<uint32_t> reservations{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> answered{0};
  std::atomic<uint64_t> latency_ns{0}; ///< sum over all answered requests
  std::atomic<uint64_t> quarantined_bytes{0};
  std::atomic<const char*> state{"handshake"}; ///< a string literal

  std::string name() const {
    std::lock_guard guard(mutex_);
    return name_;
  }
  void set_name(std::string name) {
    std::lock_guard guard(mutex_);
    name_ = std::move(name);
  }

 private:
  mutable std::mutex mutex_;
  std::string name_;
};
} // namespace terrace
