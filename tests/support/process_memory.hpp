// What the kernel says of another process: its memory, and whether it stands still.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace terrace::test {

/// Returns the resident bytes of one kind: "RssAnon", the heap and stacks, or "RssShmem", memory that is
/// shared by its descriptor. 0 if there is no such process.
inline uint64_t resident_bytes(pid_t pid, const std::string& kind) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;)
    if (word == kind + ":") {
      uint64_t kibibytes = 0;
      status >> kibibytes;
      return kibibytes << 10;
    }
  return 0;
}

/// Stops a process, and returns when each of its threads stands still: `kill` returns while they still run.
/// False if there is no such process.
inline bool suspend(pid_t pid) {
  if (::kill(pid, SIGSTOP) != 0)
    return false;
  auto stands_still = [](const std::filesystem::directory_entry& thread) {
    std::ifstream file(thread.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    auto name_end = stat.rfind(')'); // "ID (NAME) STATE ...", empty for a thread that has just ended
    return name_end == std::string::npos || name_end + 2 >= stat.size() ||
           std::string("TZX").find(stat[name_end + 2]) != std::string::npos;
  };
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task"), end;
  for (; threads != end; ++threads)
    while (!stands_still(*threads))
      ::sched_yield();
  return true;
}

} // namespace terrace::test
