// A limit on bytes written per day, to protect flash from wear: a token bucket.
//
// The bucket holds one hour's share and starts full: a burst is allowed without raising the daily average.
// Pure, one thread; the time is passed in.
#pragma once

#include <chrono>
#include <cstdint>

namespace terrace {

class write_budget {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// 0: no limit.
  write_budget(uint64_t bytes_per_day, time_point now);

  /// Takes the bytes, or takes nothing and returns false. A request larger than the bucket succeeds when the
  /// bucket is full, and is paid off afterwards.
  bool take(uint64_t bytes, time_point now);

  /// Returns bytes that were taken but not written.
  void give_back(uint64_t bytes);

  /// For metrics; negative while a request larger than the bucket is being paid off.
  int64_t left(time_point now);

 private:
  void refill(time_point now);

  uint64_t bytes_per_day_;
  int64_t capacity_ = 0;
  double tokens_ = 0;
  time_point filled_;
};

} // namespace terrace
