#include "bench/placement.hpp"

#include "bench/harness.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace terrace::bench {

namespace {

void set(pid_t process, const cpu_set_t& processors) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task"))
    if (::sched_setaffinity(std::atoi(entry.path().filename().c_str()), sizeof processors, &processors) != 0)
      give_up("cannot place process " + std::to_string(process) + " on a processor");
}

} // namespace

void place(pid_t process, int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(processor) % static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN)), &one);
  set(process, one);
}

void release(pid_t process) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (long i = 0; i < ::sysconf(_SC_NPROCESSORS_ONLN); ++i)
    CPU_SET(static_cast<size_t>(i), &all);
  set(process, all);
}

} // namespace terrace::bench
