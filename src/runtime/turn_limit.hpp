// In debug builds, a turn of an actor that takes too long ends the process, because all other actors of its
// worker wait for it.
#pragma once

#include <cstdint>

namespace terrace::runtime {

/// Used by one thread. Counts the processor time of the thread, not the time that the kernel gives to others.
class turn_limit {
 public:
  /// 0: no limit, and the clock is not read.
  explicit turn_limit(int64_t limit_ns) : limit_ns_(limit_ns) {}

  void begin() {
    if (limit_ns_ != 0)
      began_ns_ = processor_time_ns();
  }
  /// Aborts if the turn of `actor` took longer than the limit.
  void end(const char* actor) const {
    if (limit_ns_ == 0)
      return;
    if (int64_t took = processor_time_ns() - began_ns_; took > limit_ns_)
      exceeded(actor, took);
  }

 private:
  static int64_t processor_time_ns();
  [[noreturn]] void exceeded(const char* actor, int64_t took_ns) const;

  int64_t limit_ns_;
  int64_t began_ns_ = 0;
};

} // namespace terrace::runtime
