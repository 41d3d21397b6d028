// A terraced in its default configuration, started for the benchmark and killed at the end of its scope.
#pragma once

#include "bench/benchmark.hpp"
#include "bench/daemon_configuration.hpp"
#include "tests/support/daemon_process.hpp"

namespace terrace::bench {

class bench_daemon : public test::daemon_process {
 public:
  /// Starts `options.terraced` in a folder in `options.folder`. Returns when all of its host memory is
  /// committed and its disk is in service, although it serves before that.
  explicit bench_daemon(const settings& options, const bench_daemon_options& with = {});

  /// Sets other options; they take effect at `start`. The preloaded library stays.
  void reconfigure(const bench_daemon_options& with);

 private:
  void wait_until_settled(bool disk);
};

} // namespace terrace::bench
