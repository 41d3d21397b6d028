// The clock of accesses: 32-bit stamps that order requests and still measure age.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace terrace {

/// Nanoseconds of a monotonic clock. The caller passes it in; policies read no clock.
using policy_time = uint64_t;

/// Ticks of 2^20 ns (about a millisecond) since a base. Two events at different times get different stamps
/// even within one tick: the clock then runs ahead of the time, by at most `lead_max` ticks (a logical clock
/// beside the physical one, Kulkarni et al. 2014). Beyond that lead, events share stamps. Stamps cover 49
/// days; before they overflow, `rebase` moves the base, and everything older than 24 days is treated as 24
/// days old.
class access_clock {
 public:
  static constexpr int tick_shift = 20;
  static constexpr uint64_t lead_max = 1000;
  static constexpr uint32_t rebase_step = 1U << 31;

  /// Registers an event and returns its stamp. `anew`: the event gets a stamp of its own even if its time
  /// equals the previous event's.
  uint32_t advance(policy_time now, bool anew) {
    uint64_t tick = now >> tick_shift;
    if (!started_) {
      base_ = tick - 1;
      ticks_ = tick;
      started_ = true;
    } else if (tick > ticks_) {
      ticks_ = tick;
    } else if ((anew || now > now_) && ticks_ - tick < lead_max) {
      ++ticks_;
    }
    now_ = std::max(now_, now);
    return stamp();
  }

  uint32_t stamp() const { return static_cast<uint32_t>(ticks_ - base_); }

  /// True when the owner must call `rebase` and map all stamps with `rebased`.
  bool overflows() const { return ticks_ - base_ > 0xc0000000U; }
  void rebase() { base_ += rebase_step; }
  static uint32_t rebased(uint32_t stamp) { return stamp > rebase_step ? stamp - rebase_step : 0; }

  /// Converts ticks to a duration.
  static std::chrono::milliseconds milliseconds(uint32_t ticks) {
    return std::chrono::milliseconds((uint64_t{ticks} << tick_shift) / 1'000'000);
  }

  /// Ticks since the time's origin, for values that outlive a base.
  uint64_t ticks(uint32_t stamp) const { return base_ + stamp; }
  uint64_t ticks() const { return ticks_; }

 private:
  uint64_t base_ = 0;
  uint64_t ticks_ = 0;
  policy_time now_ = 0;
  bool started_ = false;
};

} // namespace terrace
