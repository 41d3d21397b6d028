// Statistics of a trace, for `terrace trace info`.
#pragma once

#include "cli/trace.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

namespace terrace::cli {

// Exact percentiles of a bounded number of samples.

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

struct trace_statistics {
  size_t requests = 0;
  size_t conversations = 0;
  double seconds = 0; ///< time from the first to the last timestamp
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  uint32_t block_tokens = 0;
  uint64_t blocks = 0; ///< whole blocks requested; what a cache can serve
  uint64_t distinct_blocks =
      0;                   ///< distinct blocks among them; what a cache must hold to avoid all further misses
  uint64_t hit_blocks = 0; ///< leading blocks that an infinite cache has when the request arrives
  uint64_t contradictions = 0; ///< ids that follow two different prefixes; 0 in a valid trace
  percentiles input_length;
  percentiles output_length;
  percentiles turns; ///< requests per conversation
  /// Index of dispersion: variance over mean of the arrivals in windows of 10 s; 1 for a Poisson process.
  double burstiness = 0;

  /// The fraction of all input tokens that an infinite cache serves.
  double infinite_hit_ratio() const;
};

trace_statistics measure(const trace& requests);

} // namespace terrace::cli
