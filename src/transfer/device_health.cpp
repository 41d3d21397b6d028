#include "transfer/device_health.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace terrace {

void stall_detector::started(uint64_t tag, size_t side) {
  assert(side < sides);
  if (operations_.size() <= tag)
    operations_.resize(tag + 1);
  assert(operations_[tag].now == state::idle);
  operations_[tag] = {state::moving, static_cast<uint8_t>(side), 0};
  ++moving_;
}

bool stall_detector::ended(uint64_t tag) {
  assert(tag < operations_.size() && operations_[tag].now != state::idle);
  watched& one = operations_[tag];
  bool was_stalled = one.now == state::stalled;
  --(was_stalled ? stalled_[one.side] : moving_);
  one.now = state::idle;
  return was_stalled;
}

std::vector<uint64_t> stall_detector::tick() {
  std::vector<uint64_t> told;
  for (uint64_t tag = 0; tag < operations_.size(); ++tag) {
    watched& one = operations_[tag];
    if (one.now != state::moving || ++one.ticks <= patience_)
      continue;
    one.now = state::stalled;
    --moving_;
    ++stalled_[one.side];
    told.push_back(tag);
  }
  return told;
}

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
