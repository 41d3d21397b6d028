// Ctrl-C as a request to end early and still show the summary.
#pragma once

#include "base/unique_fd.hpp"

#include <atomic>
#include <chrono>

namespace terrace::cli {

/// During its lifetime the first SIGINT only sets the interruption; a second one kills the process as usual.
/// At most one instance exists at a time. All methods are safe on any thread.
class interruption {
 public:
  interruption();
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;

  bool requested() const { return requested_; }

  /// Has the effect of Ctrl-C. Async-signal-safe.
  void request();

  /// Sleeps until `due` or until interrupted.
  void sleep_until(std::chrono::steady_clock::time_point due) const;

 private:
  std::atomic<bool> requested_{false};
  unique_fd event_; ///< readable after the interruption: wakes all sleeping threads
};

} // namespace terrace::cli
