// A quick measurement of a running daemon, for `terrace bench`.
#pragma once

#include "cli/daemon_connection.hpp"
#include "cli/trace_statistics.hpp"

#include <optional>

namespace terrace::cli {

struct measure_options {
  uint64_t objects = 32;
  uint64_t object_bytes = 4ULL << 20;
  uint64_t depth = 4;     ///< stores and loads in flight
  uint64_t rounds = 5;    ///< rounds, in which stores, loads and memcpy take turns
  uint64_t copiers = 0;   ///< threads that the daemon copies with; 0: its default on this machine
  uint64_t digests = 128; ///< digests per lookup; all of them hit
  uint64_t lookups = 2000;
};

/// Rates are medians of the rounds.
struct measured {
  percentiles lookup_ns;
  double first_store_bytes_per_second = 0; ///< rate of the first store from a new region
  /// Rate of later stores, if there are any: the daemon copies from the region.
  double store_bytes_per_second = 0;
  double daemon_load_bytes_per_second = 0; ///< the daemon copies into the region
  std::optional<double>
      mapped_load_bytes_per_second; ///< libterrace copies under the lease; absent if the group is isolated
  /// The limits for copying: memory like the tier's and the region's, in pieces of an object.
  double memcpy_bytes_per_second = 0; ///< copied by as many threads as the daemon copies with
  double memcpy_one_thread_bytes_per_second = 0;
  uint64_t memcpy_threads = 0;
  uint64_t wrong_bytes = 0;
};

/// Works in new spaces: no stored data is read, but up to rounds * objects * object_bytes may be evicted. Fails if the
/// daemon cannot hold that much.
outcome<measured> measure_daemon(const daemon_options& daemon, const measure_options& options);

} // namespace terrace::cli
