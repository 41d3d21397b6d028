#include "metrics/latency_histogram.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::metrics {

void latency_histogram::observe(std::chrono::nanoseconds latency) noexcept {
  auto ns = static_cast<uint64_t>(std::max<int64_t>(0, latency.count()));
  auto bound = std::lower_bound(bounds_ns.begin(), bounds_ns.end(), ns);
  buckets_[static_cast<size_t>(bound - bounds_ns.begin())].add();
  sum_ns_.add(ns);
}

latency_histogram::snapshot latency_histogram::read() const noexcept {
  snapshot now;
  for (size_t i = 0; i < buckets_.size(); ++i)
    now.counts[i] = buckets_[i].value();
  now.sum_ns = sum_ns_.value();
  return now;
}

uint64_t latency_histogram::snapshot::count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

} // namespace terrace::metrics
