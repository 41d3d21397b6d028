// A file that other processes read, and the name by which messages tell of it.
#pragma once

#include "base/unique_fd.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

/// Safe on all threads.
class named_file {
 public:
  named_file(unique_fd opened, std::string name) : descriptor(std::move(opened)), path(std::move(name)) {}
  ~named_file() {
    for (const auto& each : at_end_)
      each();
  }
  named_file(const named_file&) = delete;

  unique_fd descriptor;
  const std::string path;
  const uint64_t number = ++last_number_; ///< no other file of this process has it
  /// How many of those that know the file do not read it, or not yet.
  std::atomic<uint32_t> unread_by{0};

  /// `what` is called by its destructor.
  void at_end(std::function<void()> what) {
    std::lock_guard lock(mutex_);
    at_end_.push_back(std::move(what));
  }

 private:
  static inline std::atomic<uint64_t> last_number_{0};

  std::mutex mutex_; ///< protects the list
  std::vector<std::function<void()>> at_end_;
};

} // namespace terrace
