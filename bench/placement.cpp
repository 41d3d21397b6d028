#include "bench/placement.hpp"

#include "bench/harness.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace terrace::bench {

namespace {

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task"))
    all.push_back(std::atoi(entry.path().filename().c_str()));
  return all;
}

void set_thread(pid_t thread, const cpu_set_t& processors) {
  if (::sched_setaffinity(thread, sizeof processors, &processors) != 0)
    give_up("cannot place thread " + std::to_string(thread) + " on a processor");
}

void set(pid_t process, const cpu_set_t& processors) {
  for (pid_t thread : threads_of(process))
    set_thread(thread, processors);
}

cpu_set_t only(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(processor) % static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN)), &one);
  return one;
}

/// Nanoseconds on a processor so far: the first number of schedstat.
uint64_t time_of(pid_t process, pid_t thread) {
  std::ifstream in("/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/schedstat");
  uint64_t ns = 0;
  in >> ns;
  return ns;
}

} // namespace

void place(pid_t process, int processor) { set(process, only(processor)); }

void place_busiest(pid_t process, int busiest, int other) {
  auto threads = threads_of(process);
  auto most = std::max_element(threads.begin(), threads.end(),
                               [&](pid_t a, pid_t b) { return time_of(process, a) < time_of(process, b); });
  for (pid_t thread : threads)
    set_thread(thread, only(thread == *most ? busiest : other));
}

void release(pid_t process) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (long i = 0; i < ::sysconf(_SC_NPROCESSORS_ONLN); ++i)
    CPU_SET(static_cast<size_t>(i), &all);
  set(process, all);
}

} // namespace terrace::bench
