#include "metrics/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace terrace::metrics {
namespace {

using namespace std::chrono_literals;

TEST(LatencyHistogram, PutsABoundItselfIntoItsOwnBucket) {
  latency_histogram histogram;
  histogram.observe(10us);
  histogram.observe(10us + 1ns);
  auto now = histogram.read();
  EXPECT_EQ(now.counts[0], 1u);
  EXPECT_EQ(now.counts[1], 1u);
  EXPECT_EQ(now.sum, 20'001u);
}

TEST(LatencyHistogram, KeepsWhatIsSlowerThanTheLastBound) {
  latency_histogram histogram;
  histogram.observe(11s);
  EXPECT_EQ(histogram.read().counts.back(), 1u);
}

TEST(LatencyHistogram, CountsANegativeLatencyAsNothing) {
  latency_histogram histogram;
  histogram.observe(-5ns);
  EXPECT_EQ(histogram.read().counts.front(), 1u);
  EXPECT_EQ(histogram.read().sum, 0u);
}

TEST(LatencyHistogram, LosesNothingBetweenThreads) {
  latency_histogram histogram;
  auto observe = [&] {
    for (int i = 0; i < 10'000; ++i)
      histogram.observe(std::chrono::microseconds(i));
  };
  std::thread other(observe);
  observe();
  other.join();
  EXPECT_EQ(histogram.read().count(), 20'000u);
}

TEST(AgeHistogram, CountsSecondsToDays) {
  age_histogram histogram;
  for (auto age : {std::chrono::milliseconds(-1), std::chrono::milliseconds(1'000),
                   std::chrono::milliseconds(1'001), std::chrono::milliseconds(std::chrono::hours(24 * 30))})
    histogram.observe(age);
  auto now = histogram.read();
  EXPECT_EQ(now.count(), 4U);
  EXPECT_EQ(now.counts[0], 2U);
  EXPECT_EQ(now.counts[1], 1U);
  EXPECT_EQ(now.counts.back(), 1U);
  EXPECT_EQ(now.counts.size(), now.bounds.size() + 1);
}

} // namespace
} // namespace terrace::metrics
