// Reads the kernel's figures about the memory of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
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

} // namespace terrace::test
