// Percentiles of measured samples.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace terrace::bench {

/// Returns the smallest sample that at least `share` (0 to 1) of all samples do not exceed. Takes a copy,
/// because it sorts.
inline double percentile(std::vector<double> samples, double share) {
  assert(!samples.empty());
  auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(samples.size())));
  auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::clamp<size_t>(rank, 1, samples.size()) - 1);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

/// Returns the middle sample, or the mean of the middle two.
inline double median(std::vector<double> samples) {
  assert(!samples.empty());
  std::sort(samples.begin(), samples.end());
  size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

} // namespace terrace::bench
