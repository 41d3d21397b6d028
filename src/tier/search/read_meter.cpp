#include "tier/search/read_meter.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace terrace {

double read_meter::seconds_since_last(time_point now) const {
  return std::max(0.0, std::chrono::duration<double>(now - last_).count());
}

void read_meter::fade(double halves) {
  const double rest = std::exp2(-halves);
  for (measured* each : {&behind_first_, &first_}) {
    each->bytes *= rest;
    each->seconds *= rest;
  }
}

void read_meter::has_to_read(uint64_t before, uint64_t after, time_point now) {
  if (before == after)
    return;
  std::lock_guard guard(lock_);
  assert(queued_ >= before);
  const bool began = queued_ == 0;
  queued_ += after - before;
  if (!began && queued_ != 0)
    return;
  waits_ = began;
  came_first_ = 0;
  if (began)
    fade(seconds_since_last(now) / half_idle_s);
  last_ = std::max(last_, now);
}

void read_meter::answered(uint64_t bytes, time_point now) {
  std::lock_guard guard(lock_);
  if (!waits_)
    return;
  waits_ = false;
  came_first_ = std::min(bytes, queued_);
  const double took = seconds_since_last(now);
  first_.bytes += static_cast<double>(came_first_);
  first_.seconds += took;
  first_byte_s_ = first_byte_s_ < 0 ? took : first_byte_s_ + newest_share * (took - first_byte_s_);
  last_ = std::max(last_, now);
}

void read_meter::arrived(uint64_t bytes, time_point now) {
  std::lock_guard guard(lock_);
  waits_ = false;
  const uint64_t early = std::min(bytes, came_first_);
  came_first_ -= early;
  const double took = seconds_since_last(now);
  fade(static_cast<double>(bytes) / half_bytes + took / half_read_s);
  behind_first_.bytes += static_cast<double>(bytes - early);
  behind_first_.seconds += took;
  last_ = std::max(last_, now);
}

read_state read_meter::state(time_point now) const {
  std::lock_guard guard(lock_);
  read_state made;
  made.queued_bytes = queued_;
  const double since = seconds_since_last(now);
  (queued_ == 0 ? made.idle_s : made.waits_s) = since;
  measured of = behind_first_;
  if (first_byte_s_ >= 0 && behind_first_.bytes > first_.bytes) {
    made.first_byte_s = waits_ ? std::max(first_byte_s_, since) : first_byte_s_;
  } else { // too little came behind first bytes to tell the two apart
    of.bytes += first_.bytes;
    of.seconds += first_.seconds;
  }
  if (of.bytes <= 0)
    return made;
  double seconds = std::max(of.seconds, 1e-9);
  if (queued_ != 0) {
    const double expected =
        (waits_ ? made.first_byte_s : 0) + static_cast<double>(queued_) * seconds / of.bytes;
    seconds += std::max(0.0, since - expected);
  }
  made.bytes_per_s = of.bytes / seconds;
  return made;
}

} // namespace terrace
