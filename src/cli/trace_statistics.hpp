// Statistics of a trace, for `terrace trace info`.
#pragma once

#include "cli/latency_recorder.hpp"
#include "cli/trace.hpp"

namespace terrace::cli {

struct trace_statistics {
  size_t requests = 0;
  size_t conversations = 0;
  double seconds = 0; ///< time from the first to the last timestamp
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
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
