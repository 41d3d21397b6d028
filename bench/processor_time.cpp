#include "bench/processor_time.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace terrace::bench {

namespace {

struct thread_times {
  double on_cpu = 0, waiting = 0; ///< in ns
};

thread_times times_of(pid_t pid) {
  thread_times all;
  for (auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    thread_times one;
    std::ifstream(task.path() / "schedstat") >> one.on_cpu >> one.waiting;
    all.on_cpu += one.on_cpu;
    all.waiting += one.waiting;
  }
  return all;
}

} // namespace

double cpu_seconds_of(pid_t pid) { return times_of(pid).on_cpu * 1e-9; }

double runnable_seconds_of(pid_t pid) {
  auto all = times_of(pid);
  return (all.on_cpu + all.waiting) * 1e-9;
}

} // namespace terrace::bench
