// Observes which threads of a program unmap large memory and close descriptors of memfds, and can hold such a
// call.
//
//   watched_calls calls;
//   daemon_under_test daemon({.before_exec = [&] { calls.install(); }});
//   calls.hold();
//   ... something makes the daemon unmap ...
//   auto held = calls.await_held();      // the thread stands in the system call
//   calls.let_go();
//
// A seccomp filter asks this process about each such call (SECCOMP_RET_USER_NOTIF), and every answer lets it
// continue.
#pragma once

#include "base/unique_fd.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace terrace::test {

class watched_calls {
 public:
  /// Calls of munmap are observed from this size on, unless they end a mere reservation of addresses.
  static constexpr uint64_t large_bytes = 1ULL << 30; // more than malloc ever unmaps

  struct call {
    std::string thread; ///< name of the thread
    std::string what;   ///< "unmap 1073741824" or "close /memfd:NAME (deleted)"
  };

  watched_calls();
  ~watched_calls();
  watched_calls(const watched_calls&) = delete;
  watched_calls& operator=(const watched_calls&) = delete;

  /// Called in a child before it executes its program. Ends the child if the kernel refuses the filter.
  void install();

  /// From now on the next call of munmap is held until `let_go`.
  void hold();
  /// Blocks until a call is held; returns nothing if none is within the tests' patience.
  std::optional<call> await_held();
  void let_go();

  /// Blocks until the thread has made a call whose `what` contains the text. Returns false if it does not
  /// within the tests' patience.
  bool await_seen(const std::string& thread, const std::string& what);
  std::vector<call> seen();

 private:
  void serve();
  void answer(int listener);
  static void go_on(int listener, uint64_t id);

  unique_fd here_, there_; ///< a pair of sockets: the child sends its filter's descriptor
  unique_fd stop_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<call> seen_;
  bool holding_ = false;
  std::optional<call> held_;
  int held_by_ = -1;
  uint64_t held_id_ = 0;
  std::thread thread_;
};

} // namespace terrace::test
