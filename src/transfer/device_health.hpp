// Whether a device is to be used: out of service after errors that are its own, tried again after a pause, and back when a
// trial succeeds. Errors of single operations are not its business: whoever reads an unreadable block sees that alone.
//
//   healthy --(failures in a row, one that speaks for the whole device, or a stall)--> degraded
//   degraded --(the pause is over: `begin_trial`)--> probing
//   probing --(the trial succeeded)--> healthy, or --(it failed)--> degraded, for twice as long
//
// One for each direction: a full device cannot be written and can still be read. Pure, one thread; the time is given.
#pragma once

#include <chrono>
#include <cstdint>

namespace terrace {

struct health_options {
  uint32_t failures_max = 4;                   ///< in a row
  std::chrono::milliseconds first_pause{1000}; ///< doubled with each failure that follows
  std::chrono::milliseconds longest_pause{60'000};
  uint32_t recovered_after = 64;                 ///< successes after which the next pause is the first again
  std::chrono::milliseconds stall_after{10'000}; ///< an operation that takes so long speaks for the device
};

class device_health {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class state : uint8_t { healthy, degraded, probing };

  explicit device_health(const health_options& options = {}) : options_(options) {}

  /// Outcomes of ordinary operations. What comes in late, while the device is out of service, changes nothing.
  void succeeded();
  /// True when this took the device out of service.
  bool failed(int error_number, time_point now);
  /// An operation has not come back in `stall_after`. The same.
  bool stalled(time_point now);

  /// Precondition: degraded, and `retry_at` has come.
  void begin_trial();
  /// Precondition: probing. `error_number` 0: the device is back. True when it is.
  bool end_trial(int error_number, time_point now);

  state now() const { return state_; }
  bool healthy() const { return state_ == state::healthy; }
  int error_number() const { return error_; }                ///< that took it out of service
  time_point retry_at() const { return retry_at_; }          ///< while degraded
  std::chrono::milliseconds pause() const { return pause_; } ///< the present or the last one

  /// Errors that speak for the whole device: it is gone, full, or cannot be written.
  static bool speaks_for_the_device(int error_number);

 private:
  void degrade(int error_number, time_point now);

  health_options options_;
  state state_ = state::healthy;
  uint32_t failures_ = 0;  ///< in a row
  uint32_t successes_ = 0; ///< since the device came back
  int error_ = 0;
  std::chrono::milliseconds pause_{0};
  time_point retry_at_{};
};

} // namespace terrace
