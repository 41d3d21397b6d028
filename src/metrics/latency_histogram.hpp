// Latencies in fixed buckets from 10 us to 10 s, and ages in fixed buckets from 1 s to 7 days.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace terrace::metrics {

// The atomics of every probe: numbers modified by one thread while another reads them for a scrape.

/// A number that only grows. It is relaxed: a scrape may see two counters of one event at different times,
/// but never a torn value.
class counter {
 public:
  void add(uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

/// A value that goes up and down.
class gauge {
 public:
  void set(uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  void add(uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  void subtract(uint64_t n = 1) noexcept { value_.fetch_sub(n, std::memory_order_relaxed); }
  uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

/// The counts of a histogram so far. Its bounds are static data.
struct histogram_snapshot {
  std::span<const uint64_t> bounds; ///< upper bounds, inclusive; greater values go into one more bucket
  double units_per_second = 1;      ///< unit of the bounds and of the sum
  std::vector<uint64_t> counts;     ///< per bucket, not cumulative
  uint64_t sum = 0;
  uint64_t count() const;
};

/// `observe` is lock-free and wait-free: a search in 19 bounds and two relaxed additions. Fixed bounds keep
/// the number of series fixed and allow adding up histograms of several daemons.
class latency_histogram {
 public:
  static constexpr std::array<uint64_t, 19> bounds_ns = {
      10'000,      25'000,        50'000,        100'000,       250'000,       500'000,     1'000'000,
      2'500'000,   5'000'000,     10'000'000,    25'000'000,    50'000'000,    100'000'000, 250'000'000,
      500'000'000, 1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000};

  using snapshot = histogram_snapshot;

  /// A negative latency (clock readings from two processors) counts as 0.
  void observe(std::chrono::nanoseconds latency) noexcept;

  snapshot read() const;

 private:
  std::array<counter, bounds_ns.size() + 1> buckets_;
  counter sum_ns_;
};

/// A histogram of how long objects stay unused: seconds to days.
class age_histogram {
 public:
  static constexpr std::array<uint64_t, 14> bounds_ms = {
      1'000,   5'000,     15'000,    30'000,     60'000,     120'000,    300'000,
      900'000, 1'800'000, 3'600'000, 10'800'000, 43'200'000, 86'400'000, 604'800'000};

  void observe(std::chrono::milliseconds age, uint64_t times = 1) noexcept;

  histogram_snapshot read() const;

 private:
  std::array<counter, bounds_ms.size() + 1> buckets_;
  counter sum_ms_;
};

} // namespace terrace::metrics
