#include "metrics/latency_histogram.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::metrics {

namespace {

template <size_t Bounds>
void count(const std::array<uint64_t, Bounds>& bounds, std::array<counter, Bounds + 1>& buckets, counter& sum,
           int64_t value, uint64_t times = 1) noexcept {
  auto counted = static_cast<uint64_t>(std::max<int64_t>(0, value));
  auto bound = std::lower_bound(bounds.begin(), bounds.end(), counted);
  buckets[static_cast<size_t>(bound - bounds.begin())].add(times);
  sum.add(counted * times);
}

template <size_t Bounds>
histogram_snapshot read_all(const std::array<uint64_t, Bounds>& bounds, double units_per_second,
                            const std::array<counter, Bounds + 1>& buckets, const counter& sum) {
  histogram_snapshot now{bounds, units_per_second, {}, sum.value()};
  for (const counter& bucket : buckets)
    now.counts.push_back(bucket.value());
  return now;
}

} // namespace

uint64_t histogram_snapshot::count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

void latency_histogram::observe(std::chrono::nanoseconds latency) noexcept {
  count(bounds_ns, buckets_, sum_ns_, latency.count());
}

histogram_snapshot latency_histogram::read() const { return read_all(bounds_ns, 1e9, buckets_, sum_ns_); }

void age_histogram::observe(std::chrono::milliseconds age, uint64_t times) noexcept {
  count(bounds_ms, buckets_, sum_ms_, age.count(), times);
}

histogram_snapshot age_histogram::read() const { return read_all(bounds_ms, 1e3, buckets_, sum_ms_); }

} // namespace terrace::metrics
