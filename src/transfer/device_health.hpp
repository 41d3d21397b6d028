// Health of a device: out of service after device errors, retried after a pause, and back in service once a
// trial succeeds. Errors of single operations do not count: an unreadable block fails only its own read.
//
//   healthy --(failures in a row, one that speaks for the whole device, or a stall)--> degraded
//   degraded --(the pause is over: `begin_trial`)--> probing
//   probing --(the trial succeeded)--> healthy, or --(it failed)--> degraded, for twice as long
//
// One per direction: a full device cannot be written but can still be read. Pure, one thread; the time is
// passed in.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

// Detects device operations that do not complete. An operation that has seen more than `patience` ticks of a
// timer is stalled: it is reported once and counted until it ends. No clock: the owner has the timer, and
// needs it only while operations are watched. A machine that slept for an hour has seen one tick.
//
//   stall_detector watch(4);                      // with a tick every 2.5 s: between 10 and 12.5 s
//   watch.started(tag, side);  ...  bool was_stalled = watch.ended(tag);
//   for (uint64_t tag : watch.tick()) ...      // these are stalled from now on
//
// Pure bookkeeping, one thread. `side` separates the counts of reads and writes.

/// Ticks that a device operation may see before it is stalled; `stall_after` is this many ticks.
constexpr uint32_t ticks_of_patience = 4;

class stall_detector {
 public:
  static constexpr size_t sides = 2;

  explicit stall_detector(uint32_t patience) : patience_(patience) {}

  /// Tags are small numbers, reused once they have ended. Precondition: this one is not watched.
  void started(uint64_t tag, size_t side);

  /// Precondition: watched. True if it was stalled.
  bool ended(uint64_t tag);

  /// Returns the operations that became stalled with this tick, by ascending tag.
  std::vector<uint64_t> tick();

  size_t stalled(size_t side) const { return stalled_[side]; }

  /// True if an operation is watched that is not stalled, so that a tick may find something.
  bool worth_a_tick() const { return moving_ != 0; }

 private:
  enum class state : uint8_t { idle, moving, stalled };
  struct watched {
    state now = state::idle;
    uint8_t side = 0;
    uint32_t ticks = 0;
  };

  uint32_t patience_;
  std::vector<watched> operations_; ///< by tag
  std::array<size_t, sides> stalled_{};
  size_t moving_ = 0;
};

struct health_options {
  uint32_t failures_max = 4;                   ///< consecutive
  std::chrono::milliseconds first_pause{1000}; ///< doubled with each further failure
  std::chrono::milliseconds longest_pause{60'000};
  uint32_t recovered_after = 64; ///< successes after which the pause is reset to the first
  std::chrono::milliseconds stall_after{
      10'000};                             ///< an operation that takes longer counts as a device failure
  std::chrono::milliseconds look_every{0}; ///< whether the file is still the one that was opened; 0: never
};

class device_health {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class state : uint8_t { healthy, degraded, probing };

  explicit device_health(const health_options& options = {}) : options_(options) {}

  /// Results of ordinary operations. Results that arrive while the device is out of service are ignored.
  void succeeded();
  /// True if this took the device out of service.
  bool failed(int error_number, time_point now);
  /// An operation has not completed within `stall_after`. Returns as above.
  bool stalled(time_point now);

  /// Precondition: degraded, and `retry_at` has passed.
  void begin_trial();
  /// Precondition: probing. `error_number` 0: success. True if the device is back in service.
  bool end_trial(int error_number, time_point now);

  state now() const { return state_; }
  bool healthy() const { return state_ == state::healthy; }
  int error_number() const { return error_; }                ///< of the error that took it out of service
  time_point retry_at() const { return retry_at_; }          ///< while degraded
  std::chrono::milliseconds pause() const { return pause_; } ///< the current or the last one

  /// Errors of the whole device: it is gone, full, or read-only.
  static bool speaks_for_the_device(int error_number);

 private:
  void degrade(int error_number, time_point now);

  health_options options_;
  state state_ = state::healthy;
  uint32_t failures_ = 0;  ///< consecutive
  uint32_t successes_ = 0; ///< since the device came back
  int error_ = 0;
  std::chrono::milliseconds pause_{0};
  time_point retry_at_{};
};

} // namespace terrace
