#include "cli/trace_statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace terrace::cli {
namespace {

TEST(Percentiles, AreZeroWithoutSamples) { EXPECT_EQ(percentiles_of({}), percentiles{}); }

TEST(Percentiles, OfOneSampleAreThatSample) {
  percentiles p = percentiles_of({7});
  EXPECT_EQ(p, (percentiles{1, 7, 7, 7, 7, 7}));
}

TEST(Percentiles, FollowTheNearestRank) {
  std::vector<uint64_t> samples(200);
  std::iota(samples.rbegin(), samples.rend(), 1); // 200 ... 1: the order does not matter
  percentiles p = percentiles_of(samples);
  EXPECT_EQ(p, (percentiles{200, 100.5, 100, 180, 198, 200}));
}

TEST(Percentiles, TheSlowestOfTwoIsThe99th) { EXPECT_EQ(percentiles_of({1, 9}).p99, 9U); }

TEST(LatencyRecorder, MergesTheSamplesOfThreads) {
  latency_recorder a, b;
  a.add(1);
  b.add(3);
  a.merge(b);
  EXPECT_EQ(a.summary().count, 2U);
  EXPECT_EQ(a.summary().max, 3U);
}

} // namespace
} // namespace terrace::cli
