// Metrics of the process, under the names that all Prometheus clients use.
#pragma once

#include "metrics/samples.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace terrace::metrics {

/// Reads /proc. Safe on any thread.
inline void collect_process(double started, sample_sink& sink) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& of) {
    return static_cast<double>(of.tv_sec) + static_cast<double>(of.tv_usec) * 1e-6;
  };
  sink.counter("process_cpu_seconds_total", "Processor time of the process, in seconds.", {},
               seconds(used.ru_utime) + seconds(used.ru_stime));
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t virtual_pages = 0, resident_pages = 0;
  // What cannot be read, as without a free descriptor, is left out.
  if (std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages) {
    sink.gauge("process_virtual_memory_bytes", "Virtual memory of the process.", {},
               static_cast<double>(virtual_pages * page_bytes));
    sink.gauge("process_resident_memory_bytes", "Resident memory of the process, its shared memory included.",
               {}, static_cast<double>(resident_pages * page_bytes));
  }
  sink.gauge("process_start_time_seconds", "Start time of the process, in seconds since 1970.", {}, started);
  std::error_code failed;
  double open = -1; // the one that reads the folder
  for (std::filesystem::directory_iterator fd("/proc/self/fd", failed), end; !failed && fd != end;
       fd.increment(failed))
    ++open;
  if (!failed)
    sink.gauge("process_open_fds", "Open descriptors of the process.", {}, open);
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  sink.gauge("process_max_fds", "Bound of the number of open descriptors.", {},
             most.rlim_cur == RLIM_INFINITY ? INFINITY : static_cast<double>(most.rlim_cur));
}

} // namespace terrace::metrics
