// A terraced of the benchmark's own, killed at the end of its scope.
#pragma once

#include "bench/benchmark.hpp"
#include "tests/support/daemon_process.hpp"

#include <cstdint>
#include <string>

namespace terrace::bench {

struct bench_daemon_options {
  uint32_t workers = 1;
  uint64_t host_bytes = 256ULL << 20;
  uint64_t disk_bytes = 0;  ///< 0: no disk tier
  bool isolated = false;    ///< the one group that clients meet
  std::string metrics = {}; ///< address; empty: off
};

class bench_daemon : public test::daemon_process {
 public:
  /// With `options.terraced`, in a folder in `options.folder`. Its policies are lru, and it logs warnings only.
  bench_daemon(const settings& options, const bench_daemon_options& with);
};

} // namespace terrace::bench
