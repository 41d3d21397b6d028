// Exact percentiles of a bounded number of samples.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace terrace::cli {

struct percentiles {
  uint64_t count = 0;
  double mean = 0;
  uint64_t p50 = 0;
  uint64_t p90 = 0;
  uint64_t p99 = 0;
  uint64_t max = 0;
  friend bool operator==(const percentiles&, const percentiles&) = default;
};

/// Nearest rank: the p-th percentile is the smallest sample that at least p % of the samples do not exceed.
/// All zero without samples.
percentiles percentiles_of(std::vector<uint64_t> samples);

/// All latencies of one verb in nanoseconds, 8 bytes each. Not thread-safe; each thread has its own, and they
/// are merged at the end.
class latency_recorder {
 public:
  void add(uint64_t nanoseconds) { samples_.push_back(nanoseconds); }
  void merge(const latency_recorder& other) {
    samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
  }
  bool empty() const { return samples_.empty(); }
  uint64_t sum() const { return std::accumulate(samples_.begin(), samples_.end(), uint64_t{0}); }
  percentiles summary() const { return percentiles_of(samples_); }

 private:
  std::vector<uint64_t> samples_;
};

} // namespace terrace::cli
