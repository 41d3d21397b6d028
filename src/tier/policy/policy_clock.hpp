// The clock that measures ages for eviction policies.
#pragma once

#include "base/access_clock.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace terrace {

enum class clock_source : uint8_t {
  steady, ///< the machine's clock
  told, ///< times sent by clients with their inferences, for replaying traces faster than they were recorded
};

/// A told clock starts at 0 and changes only when a time is received. It does not go back, and it advances by
/// at most `step_max` at a time, even the first time, because clients may count from any moment.
class policy_clock {
 public:
  static constexpr policy_time step_max = uint64_t{16} * 24 * 3600 * 1'000'000'000;

  explicit policy_clock(clock_source source = clock_source::steady) : source_(source) {}

  void hear(std::optional<policy_time> told) {
    if (source_ == clock_source::steady || !told)
      return;
    if (*told <= last_told_)
      return;
    now_ += std::min(*told - last_told_, step_max);
    last_told_ = *told;
  }

  policy_time now() const {
    if (source_ == clock_source::told)
      return now_;
    return static_cast<policy_time>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

 private:
  clock_source source_;
  policy_time last_told_ = 0;
  policy_time now_ = 0;
};

} // namespace terrace
