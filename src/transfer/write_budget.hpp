// How many bytes may be written, as flash wears: a token bucket of so many bytes a day.
//
// The bucket holds one hour's worth, and is full at the start: a burst goes through, a day's average does not grow. Pure,
// one thread; the time is given.
#pragma once

#include <chrono>
#include <cstdint>

namespace terrace {

class write_budget {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// 0: no limit.
  write_budget(uint64_t bytes_per_day, time_point now);

  /// Takes the bytes, or nothing and says no. What is larger than the whole bucket goes when that is full, and is paid
  /// for afterwards.
  bool take(uint64_t bytes, time_point now);

  /// What was taken and not written after all.
  void give_back(uint64_t bytes);

  /// For metrics; negative while something larger than the bucket is paid for.
  int64_t left(time_point now);

 private:
  void refill(time_point now);

  uint64_t bytes_per_day_;
  int64_t capacity_ = 0;
  double tokens_ = 0;
  time_point filled_;
};

} // namespace terrace
