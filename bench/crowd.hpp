// Clients of a daemon that are at work at the same time, each on a thread with a connection of its own.
#pragma once

#include "bench/workload.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace terrace::bench {

/// Runs every piece of work on a thread of its own, again and again for so long; returns when all have ended.
void work_together(const std::vector<std::function<void()>>& work, double seconds);

/// A client with one space and a region that all its requests copy from or into.
class crowd_client {
 public:
  /// Regions of `region_objects` objects.
  crowd_client(const std::string& socket_path, uint64_t object_bytes, size_t region_objects);
  crowd_client(crowd_client&&) = default;

  client::connection& connection() { return connection_; }
  const client::space& space() const { return space_; }

  /// At most as many chunks as the region has objects. The tickets are taken with `finish`.
  client::ticket<client::load_result> begin_load(const std::vector<digest>& chain);
  client::ticket<client::store_result> begin_store(const std::vector<digest>& chain, uint32_t first = 0);
  /// Of what a lease holds.
  client::ticket<client::load_result> begin_load(const client::lookup_result& found);

  /// Bytes that were delivered.
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
  std::vector<client::run> runs_; ///< one for each object of the region
};

} // namespace terrace::bench
