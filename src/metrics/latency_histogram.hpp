// Latencies in fixed buckets from 10 us to 10 s.
#pragma once

#include "metrics/counter.hpp"

#include <array>
#include <chrono>

namespace terrace::metrics {

/// `observe` is lock-free and wait-free: a search in 19 bounds and two relaxed additions. Fixed bounds keep
/// the number of series fixed and allow adding up histograms of several daemons.
class latency_histogram {
 public:
  /// Upper bounds in nanoseconds, inclusive; slower values go into one more bucket.
  static constexpr std::array<uint64_t, 19> bounds_ns = {
      10'000,      25'000,        50'000,        100'000,       250'000,       500'000,     1'000'000,
      2'500'000,   5'000'000,     10'000'000,    25'000'000,    50'000'000,    100'000'000, 250'000'000,
      500'000'000, 1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000};

  struct snapshot {
    std::array<uint64_t, bounds_ns.size() + 1> counts{}; ///< per bucket, not cumulative
    uint64_t sum_ns = 0;
    uint64_t count() const;
  };

  /// A negative latency (clock readings from two processors) counts as 0.
  void observe(std::chrono::nanoseconds latency) noexcept;

  snapshot read() const noexcept;

 private:
  std::array<counter, bounds_ns.size() + 1> buckets_;
  counter sum_ns_;
};

} // namespace terrace::metrics
