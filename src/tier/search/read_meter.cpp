#include "tier/search/read_meter.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace terrace {

double read_meter::seconds_since_last(time_point now) const {
  return std::max(0.0, std::chrono::duration<double>(now - last_).count());
}

void read_meter::fade(double halves) {
  double rest = std::exp2(-halves);
  bytes_ *= rest;
  seconds_ *= rest;
}

void read_meter::has_to_read(uint64_t before, uint64_t after, time_point now) {
  if (before == after)
    return;
  std::lock_guard guard(lock_);
  assert(queued_ >= before);
  bool began = queued_ == 0;
  queued_ += after - before;
  if (!began && queued_ != 0)
    return;
  if (began && bytes_ > 0)
    fade(seconds_since_last(now) / half_idle_s);
  last_ = std::max(last_, now);
}

void read_meter::arrived(uint64_t bytes, time_point now) {
  std::lock_guard guard(lock_);
  double took = seconds_since_last(now);
  fade(static_cast<double>(bytes) / half_bytes + took / half_read_s);
  bytes_ += static_cast<double>(bytes);
  seconds_ += took;
  last_ = std::max(last_, now);
}

read_state read_meter::state(time_point now) const {
  std::lock_guard guard(lock_);
  read_state made;
  made.queued_bytes = queued_;
  double since = seconds_since_last(now);
  if (queued_ == 0)
    made.idle_s = since;
  if (bytes_ <= 0)
    return made;
  double seconds = std::max(seconds_, 1e-9);
  if (queued_ != 0) {
    double expected = static_cast<double>(queued_) * seconds / bytes_;
    seconds += std::max(0.0, since - expected);
  }
  made.bytes_per_s = bytes_ / seconds;
  return made;
}

} // namespace terrace
