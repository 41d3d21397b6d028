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

namespace fs = std::filesystem;

namespace {

fs::path tasks_of(pid_t process) { return "/proc/" + std::to_string(process) + "/task"; }

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> all;
  for (const auto& entry : fs::directory_iterator(tasks_of(process)))
    all.push_back(std::atoi(entry.path().filename().c_str()));
  return all;
}

bool is_named(pid_t process, pid_t thread, std::string_view begin) {
  std::ifstream in(tasks_of(process) / std::to_string(thread) / "comm");
  std::string name;
  return in >> name && name.starts_with(begin);
}

/// The daemon's other threads have work of their own, such as taking its memory from the kernel.
bool is_worker(pid_t process, pid_t thread) { return is_named(process, thread, "worker-"); }

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

/// Returns the nanoseconds on a processor so far: the first number of schedstat.
uint64_t time_of(pid_t process, pid_t thread) {
  std::ifstream in(tasks_of(process) / std::to_string(thread) / "schedstat");
  uint64_t ns = 0;
  in >> ns;
  return ns;
}

} // namespace

void place(pid_t process, int processor) { set(process, only(processor)); }

void place_named(pid_t process, std::string_view name, int processor) {
  for (pid_t thread : threads_of(process))
    if (is_named(process, thread, name))
      set_thread(thread, only(processor));
}

void place_this_thread(int processor) { set_thread(0, only(processor)); }

pid_t busiest_worker(pid_t process, const std::function<void()>& busy) {
  auto threads = threads_of(process);
  std::erase_if(threads, [&](pid_t thread) { return !is_worker(process, thread); });
  if (threads.empty())
    give_up("no thread of process " + std::to_string(process) + " is named worker-...");
  std::vector<uint64_t> before(threads.size());
  auto now = [&](pid_t thread) { return time_of(process, thread); };
  std::transform(threads.begin(), threads.end(), before.begin(), now);
  busy();
  size_t most = 0;
  uint64_t most_ns = 0;
  for (size_t i = 0; i < threads.size(); ++i)
    if (uint64_t ns = now(threads[i]) - before[i]; ns > most_ns) {
      most = i;
      most_ns = ns;
    }
  return threads[most];
}

void release(pid_t process) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (long i = 0; i < ::sysconf(_SC_NPROCESSORS_ONLN); ++i)
    CPU_SET(static_cast<size_t>(i), &all);
  set(process, all);
}

} // namespace terrace::bench
