// A terraced of the benchmark's own in its default configuration, killed at the end of its scope.
#pragma once

#include "bench/benchmark.hpp"
#include "bench/daemon_configuration.hpp"
#include "tests/support/daemon_process.hpp"

namespace terrace::bench {

class bench_daemon : public test::daemon_process {
 public:
  /// `options.terraced` in a folder in `options.folder`. Returns when all of its host memory is there and its disk is in
  /// service: it serves before.
  explicit bench_daemon(const settings& options, const bench_daemon_options& with = {});

  /// Other options; they take effect at `start`. The library that is preloaded stays.
  void reconfigure(const bench_daemon_options& with);

 private:
  void wait_until_settled(bool disk);
};

} // namespace terrace::bench
