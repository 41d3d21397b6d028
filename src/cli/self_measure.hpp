// A quick measure of a running daemon: what `terrace bench` does.
#pragma once

#include "cli/daemon_connection.hpp"
#include "cli/latency_recorder.hpp"

#include <optional>

namespace terrace::cli {

struct measure_options {
  uint64_t objects = 32;
  uint64_t object_bytes = 4ULL << 20;
  uint64_t depth = 4;     ///< stores and loads in flight
  uint64_t digests = 128; ///< of each lookup; all of them hit
  uint64_t lookups = 2000;
};

struct measured {
  percentiles lookup_ns;
  double store_bytes_per_second = 0;       ///< the daemon copies out of the region
  double daemon_load_bytes_per_second = 0; ///< the daemon copies into the region
  std::optional<double>
      mapped_load_bytes_per_second;   ///< libterrace copies under the lease; nothing if isolated
  double memcpy_bytes_per_second = 0; ///< of this thread, in the same memory: what copying can reach
  uint64_t wrong_bytes = 0;
};

/// Works in fresh spaces of its own: nothing that others stored is read, but up to objects * object_bytes of it may be
/// evicted. Fails if the daemon cannot hold that much.
outcome<measured> measure_daemon(const daemon_options& daemon, const measure_options& options);

} // namespace terrace::cli
