#include "bench/bench_daemon.hpp"

#include "bench/workload.hpp"
#include "tests/support/programs.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace terrace::bench {

namespace {

constexpr double daemon_patience_seconds = 60;

/// Returns the bytes of the process in shared memory.
uint64_t shared_bytes_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  uint64_t kibibytes = 0;
  for (std::string word; status >> word;)
    if (word == "RssShmem:")
      status >> kibibytes;
  return kibibytes * 1024;
}

} // namespace

// The tests' daemon has options of its own: it only creates the folder here, and is started again with the
// benchmark's options.
bench_daemon::bench_daemon(const settings& options, const bench_daemon_options& with)
    : daemon_process(options.terraced, {.parent = options.folder, .before_exec = [preload = with.preload] {
                                          if (!preload.empty())
                                            ::setenv("LD_PRELOAD", preload.c_str(), 1);
                                        }}) {
  if (terminate() != 0)
    give_up("the daemon did not end");
  reconfigure(with);
  start();
  wait_until_settled(with.disk);
}

void bench_daemon::reconfigure(const bench_daemon_options& with) {
  test::write_file(configuration_path(), daemon_configuration(with, {socket(), second_socket(), state()}));
}

void bench_daemon::wait_until_settled(bool disk) {
  auto observer = connect(socket());
  if (disk)
    wait_for_disk(observer);
  uint64_t wanted = tier_of(observer, "host").capacity_bytes;
  for (double begin = seconds_now(); shared_bytes_of(pid()) < wanted;
       std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (seconds_now() - begin > daemon_patience_seconds)
      give_up("the daemon's arena is not in memory: " + std::to_string(shared_bytes_of(pid())) +
              " bytes of " + std::to_string(wanted));
}

} // namespace terrace::bench
