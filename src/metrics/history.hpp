// What a daemon's page shows of the last hour: how full its tiers were, and what share of the tokens that were looked up they had.
//
//   history kept;
//   kept.add(now, sources);   // every history::period
//   kept.text();              // JSON for the page
#pragma once

#include "base/tier_properties.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

namespace terrace::metrics {

/// Takes what it needs from the samples of all sources. Its memory is bounded: one point of fixed size for each `period` of the
/// last hour. Not thread-safe.
class history {
 public:
  static constexpr std::chrono::seconds period{15};
  static constexpr size_t points_max = 3600 / 15;

  /// `sources` gives all samples to a sink. `time_ms`: since 1970.
  void add(int64_t time_ms, const std::function<void(sample_sink&)>& sources);

  /// Sums over all trust groups: {"points": [{"time_ms", "asked", "tiers": {"host": {"used", "capacity", "hit"}}}]}, the oldest
  /// first. Tokens are totals since the start. A tier without capacity is left out.
  std::string text() const;

 private:
  struct level {
    double used = 0, capacity = 0, hit = 0;
  };
  struct point {
    int64_t time_ms = 0;
    double asked = 0;
    std::array<level, tier_kinds> tiers;
  };
  class reading_sink;
  std::deque<point> points_;
};

} // namespace terrace::metrics
