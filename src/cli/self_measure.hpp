// A quick measurement of a running daemon, for `terrace bench`.
#pragma once

#include "cli/daemon_connection.hpp"
#include "cli/latency_recorder.hpp"

#include <optional>

namespace terrace::cli {

struct measure_options {
  uint64_t objects = 32;
  uint64_t object_bytes = 4ULL << 20;
  uint64_t depth = 4;     ///< stores and loads in flight
  uint64_t digests = 128; ///< per lookup; all of them hit
  uint64_t lookups = 2000;
};

struct measured {
  percentiles lookup_ns;
  double store_bytes_per_second = 0;       ///< the daemon copies from the region
  double daemon_load_bytes_per_second = 0; ///< the daemon copies into the region
  std::optional<double>
      mapped_load_bytes_per_second;   ///< libterrace copies under the lease; nothing if isolated
  double memcpy_bytes_per_second = 0; ///< one thread, in the same memory: the limit for copying
  uint64_t wrong_bytes = 0;
};

/// Works in new spaces: no stored data is read, but up to objects * object_bytes may be evicted. Fails if the
/// daemon cannot hold that much.
outcome<measured> measure_daemon(const daemon_options& daemon, const measure_options& options);

} // namespace terrace::cli
