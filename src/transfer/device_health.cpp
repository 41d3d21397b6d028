#include "transfer/device_health.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace terrace {

bool device_health::speaks_for_the_device(int error_number) {
  switch (error_number) {
    case ENODEV:
    case ENXIO:
    case EROFS:
    case EBADF:
    case ENOSPC:
    case EDQUOT: return true;
    default: return false;
  }
}

void device_health::succeeded() {
  if (state_ != state::healthy)
    return;
  failures_ = 0;
  if (successes_ < options_.recovered_after && ++successes_ == options_.recovered_after)
    pause_ = std::chrono::milliseconds(0);
}

bool device_health::failed(int error_number, time_point now) {
  if (state_ != state::healthy)
    return false;
  if (++failures_ < options_.failures_max && !speaks_for_the_device(error_number))
    return false;
  degrade(error_number, now);
  return true;
}

bool device_health::stalled(time_point now) {
  if (state_ != state::healthy)
    return false;
  degrade(ETIMEDOUT, now);
  return true;
}

void device_health::begin_trial() {
  assert(state_ == state::degraded);
  state_ = state::probing;
}

bool device_health::end_trial(int error_number, time_point now) {
  assert(state_ == state::probing);
  if (error_number != 0) {
    degrade(error_number, now);
    return false;
  }
  state_ = state::healthy;
  failures_ = 0;
  successes_ = 0;
  return true;
}

void device_health::degrade(int error_number, time_point now) {
  state_ = state::degraded;
  error_ = error_number;
  pause_ = std::clamp(pause_ * 2, options_.first_pause, options_.longest_pause);
  retry_at_ = now + pause_;
}

} // namespace terrace
