// A slow link to a server: it passes the bytes of connections on, with a delay and at a limited rate.
//
//   slow_link link({.listens_at = folder + "/slow.sock", .leads_to = folder + "/redis.sock"});
//   link.become({.bytes_per_s = 1e6, .round_trip = 50ms});
//
// Both ends are Unix sockets. What clients send is delayed by half of the round trip, and what the
// server sends as well; it is also limited, and all connections share the rate.
#pragma once

#include "base/unique_fd.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace terrace::test {

class slow_link {
 public:
  struct ends {
    std::string listens_at;
    std::string leads_to;
  };
  struct speed {
    double bytes_per_s = 0; ///< 0: any
    std::chrono::microseconds round_trip{0};
  };

  /// Listens once it returns. Throws if it cannot.
  explicit slow_link(ends between);
  ~slow_link();
  slow_link(const slow_link&) = delete;
  slow_link& operator=(const slow_link&) = delete;

  /// For what is received from now on.
  void become(const speed& as);

  /// Ends all connections, with what is on its way.
  void cut();

  /// Bytes of the server that have been passed on.
  uint64_t passed_bytes() const { return passed_.load(); }

 private:
  void wake();
  void work();

  ends between_;
  unique_fd listener_, wakes_;
  std::atomic<double> bytes_per_s_{0};
  std::atomic<int64_t> round_trip_us_{0};
  std::atomic<uint64_t> passed_{0};
  std::atomic<bool> ends_{false}, cuts_{false};
  std::thread thread_;
};

} // namespace terrace::test
