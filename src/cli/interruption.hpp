// Ctrl-C as a wish to end early and still see the summary.
#pragma once

#include "base/unique_fd.hpp"

#include <atomic>
#include <chrono>

namespace terrace::cli {

/// While it lives, the first SIGINT only sets it; a second one kills the process as usual. At most one lives at a
/// time. All methods may be called by any thread.
class interruption {
 public:
  interruption();
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;

  bool requested() const { return requested_; }

  /// As if Ctrl-C had been typed. Async-signal-safe.
  void request();

  /// Sleeps until `due`, or less when interrupted.
  void sleep_until(std::chrono::steady_clock::time_point due) const;

 private:
  std::atomic<bool> requested_{false};
  unique_fd event_; ///< readable from the interruption on: wakes every sleeper
};

} // namespace terrace::cli
