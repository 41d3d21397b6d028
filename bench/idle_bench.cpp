// The cost of a daemon that nobody uses.
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/processor_time.hpp"
#include "bench/workload.hpp"
#include "tests/support/child_process.hpp"

#include <unistd.h>

#include <chrono>
#include <thread>

namespace terrace::bench {

namespace {

constexpr int connections = 100;
constexpr std::chrono::seconds window{2};

double percent_of_a_core(pid_t pid) {
  double before = cpu_seconds_of(pid);
  double seconds = seconds_of([] { std::this_thread::sleep_for(window); });
  return (cpu_seconds_of(pid) - before) / seconds * 100;
}

} // namespace

void idle_cpu(const settings& options, const reporter& report) {
  bench_daemon daemon(options);
  test::child_process sleeper([] { ::pause(); });
  std::vector<client::connection> idle;
  for (int i = 0; i < connections; ++i)
    idle.push_back(connect(daemon.socket()));
  auto sides = interleave(
      options.rounds, [&] { return std::vector{percent_of_a_core(daemon.pid())}; },
      [&] { return std::vector{percent_of_a_core(sleeper.pid())}; });
  report(sides.judged({.name = "idle_cpu",
                       .unit = "% of a core",
                       .floor = 0.2,
                       .aim = 0.0005, // small enough to round to nothing
                       .rounds = options.rounds,
                       .absolute = true}));
}

} // namespace terrace::bench
