// Clients that work on a daemon at the same time, each on its own thread with its own connection.
#pragma once

#include "bench/workload.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace terrace::bench {

/// Runs each piece of work on a thread of its own, repeatedly for `seconds`; returns when all have ended.
void work_together(const std::vector<std::function<void()>>& work, double seconds);

/// A client with one space and a region that all its requests copy from or into.
class crowd_client {
 public:
  /// The region has room for `region_objects` objects.
  crowd_client(const std::string& socket_path, uint64_t object_bytes, size_t region_objects);
  crowd_client(crowd_client&&) = default;

  client::connection& connection() { return connection_; }
  const client::space& space() const { return space_; }

  /// Begins to load at most as many chunks as the region has objects. `finish` takes the tickets.
  client::ticket<client::load_result> begin_load(const std::vector<digest>& chain);
  client::ticket<client::store_result> begin_store(const std::vector<digest>& chain, uint32_t first = 0);
  /// Begins to load what a lease holds.
  client::ticket<client::load_result> begin_load(const client::lookup_result& found);

  /// Returns the number of bytes delivered.
  uint64_t finish(client::ticket<client::load_result>& under_way);
  void finish(client::ticket<client::store_result>& under_way);

  /// Stores the chain, and waits for it.
  void store(const std::vector<digest>& chain, uint32_t first = 0);
  client::lookup_result look_up(const std::vector<digest>& chain, bool lease = false);

 private:
  uint64_t object_bytes_;
  client::connection connection_;
  client::space space_;
  client::region memory_;
  client::registered_region region_;
  std::vector<client::run> runs_; ///< one run for each object of the region
};

} // namespace terrace::bench
