#include "bench/processor_time.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace terrace::bench {

double cpu_seconds_of(pid_t pid) {
  double nanoseconds = 0;
  for (auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    double on_cpu = 0;
    std::ifstream(task.path() / "schedstat") >> on_cpu;
    nanoseconds += on_cpu;
  }
  return nanoseconds * 1e-9;
}

} // namespace terrace::bench
