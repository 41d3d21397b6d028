// A file that other processes read, with the number by which messages refer to it.
#pragma once

#include "base/unique_fd.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace terrace {

/// Safe on all threads.
struct named_file {
  named_file(unique_fd opened, std::string name) : descriptor(std::move(opened)), path(std::move(name)) {}
  named_file(const named_file&) = delete;

  unique_fd descriptor;
  const std::string path;
  const uint64_t number = ++last_number; ///< no other file of this process has it

 private:
  static inline std::atomic<uint64_t> last_number{0};
};

} // namespace terrace
