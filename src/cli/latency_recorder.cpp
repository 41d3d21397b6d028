#include "cli/latency_recorder.hpp"

#include <algorithm>

namespace terrace::cli {

percentiles percentiles_of(std::vector<uint64_t> samples) {
  percentiles p;
  if (samples.empty())
    return p;
  std::sort(samples.begin(), samples.end());
  auto rank = [&](uint64_t percent) { return samples[(samples.size() * percent + 99) / 100 - 1]; };
  double sum = 0;
  for (uint64_t sample : samples)
    sum += static_cast<double>(sample);
  p.count = samples.size();
  p.mean = sum / static_cast<double>(samples.size());
  p.p50 = rank(50);
  p.p90 = rank(90);
  p.p99 = rank(99);
  p.max = samples.back();
  return p;
}

} // namespace terrace::cli
