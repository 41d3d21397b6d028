// A child forked from the test or the benchmark itself, killed at the end of its scope.
#pragma once

#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <functional>
#include <type_traits>
#include <utility>

namespace terrace::test {

/// The child's side: it sends single bytes to its parent, each of which answers one `await_word`.
class child_voice {
 public:
  explicit child_voice(int fd) : fd_(fd) {}
  void say(char word) const;
  /// Blocks until the parent ends, lets go or kills this child.
  void stay() const;

 private:
  int fd_;
};

/// Runs `work` in a child and exits with its result, 0 if that is nothing, 99 if it throws. The child ends
/// with its parent at the latest. The parent must have one thread only, or the child must keep to what is
/// safe after a fork.
class child_process {
 public:
  child_process() = default;
  explicit child_process(const std::function<int(const child_voice&)>& work);
  template <class Work>
  requires std::is_invocable_r_v<void, Work>
  explicit child_process(Work work)
      : child_process(std::function<int(const child_voice&)>([&work](const child_voice&) {
          work();
          return 0;
        })) {}
  child_process(child_process&& other) noexcept
      : ours_(std::move(other.ours_)), pid_(std::exchange(other.pid_, -1)) {}
  child_process& operator=(child_process&& other) noexcept {
    std::swap(ours_, other.ours_);
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~child_process();

  pid_t pid() const { return pid_; } ///< -1: there is none, or it was waited for

  /// Returns the next byte from the child; 0 if it has ended without one.
  char await_word() const;

  /// Returns the exit code, or 128 + signal.
  int wait();
  int kill();

  /// Ends `child_voice::stay` in the child and in children that it left behind.
  void let_go() { ours_.reset(); }

 private:
  unique_fd ours_;
  pid_t pid_ = -1;
};

} // namespace terrace::test
