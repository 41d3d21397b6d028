// A process of the benchmark's own: forked, killed at the end of its scope.
#pragma once

#include <sys/types.h>

#include <functional>
#include <utility>

namespace terrace::bench {

/// The benchmark itself has one thread, so a fork may go on in C++. The child ends when `body` returns, or with its
/// parent.
class child_process {
 public:
  child_process() = default;
  explicit child_process(const std::function<void()>& body);
  child_process(child_process&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  child_process& operator=(child_process&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~child_process();

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

/// Processor time that a process and all its threads have used, in seconds (nanosecond resolution).
double cpu_seconds_of(pid_t pid);

} // namespace terrace::bench
