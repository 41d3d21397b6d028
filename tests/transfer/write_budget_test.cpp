#include "transfer/write_plan.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using namespace std::chrono_literals;

struct WriteBudget : ::testing::Test {
  write_budget::time_point now{5h};
  write_budget budget{{.bytes_per_day = 24'000}, now}; // 1,000 an hour
};

TEST_F(WriteBudget, AnHoursWorthMayGoAtOnce) {
  EXPECT_TRUE(budget.take(600, now));
  EXPECT_TRUE(budget.take(400, now));
  EXPECT_FALSE(budget.take(1, now));
}

TEST_F(WriteBudget, TimeFillsItAgain) {
  budget.take(1000, now);
  now += 30min;
  EXPECT_FALSE(budget.take(501, now));
  EXPECT_TRUE(budget.take(500, now));
}

TEST_F(WriteBudget, NoMoreThanAnHoursWorthIsSaved) {
  now += 1000h;
  EXPECT_EQ(budget.left(now), 1000);
}

TEST_F(WriteBudget, WhatIsLargerThanTheBucketWaitsUntilItIsFullAndIsPaidForAfterwards) {
  budget.take(1, now);
  EXPECT_FALSE(budget.take(5000, now));
  now += 1h;
  EXPECT_TRUE(budget.take(5000, now));
  EXPECT_EQ(budget.left(now), -4000);
  EXPECT_FALSE(budget.take(1, now + 4h));
  EXPECT_TRUE(budget.take(1, now + 5h));
}

TEST_F(WriteBudget, WhatIsGivenBackMayBeTakenAgain) {
  budget.take(1000, now);
  budget.give_back(300);
  EXPECT_FALSE(budget.take(301, now));
  EXPECT_TRUE(budget.take(300, now));
  budget.give_back(5000);
  EXPECT_EQ(budget.left(now), 1000);
}

TEST_F(WriteBudget, ADayTakesADaysWorthAndTheBucket) {
  uint64_t taken = 0;
  for (auto end = now + 24h; now < end; now += 10s)
    while (budget.take(10, now))
      taken += 10;
  EXPECT_GE(taken, 24'900u);
  EXPECT_LE(taken, 25'000u);
}

TEST_F(WriteBudget, ZeroIsNoLimit) {
  write_budget none({}, now);
  EXPECT_TRUE(none.take(UINT64_MAX, now));
  EXPECT_TRUE(none.take(UINT64_MAX, now));
  EXPECT_EQ(none.left(now), INT64_MAX);
}

TEST_F(WriteBudget, ASecondsWorthMayGoAtOnce) {
  write_budget link({.bytes_per_second = 100}, now);
  EXPECT_TRUE(link.take(100, now));
  EXPECT_FALSE(link.take(1, now));
  now += 250ms;
  EXPECT_FALSE(link.take(26, now));
  EXPECT_TRUE(link.take(25, now));
  now += 1h;
  EXPECT_EQ(link.left(now), 100) << "no more than a second's worth is saved";
}

TEST_F(WriteBudget, OfTwoRatesBothHaveToAllowIt) {
  write_budget both({.bytes_per_day = 24'000, .bytes_per_second = 100}, now);
  EXPECT_FALSE(both.take(101, now) && both.take(1, now)) << "the second's is used up";
  write_budget slow({.bytes_per_day = 24'000, .bytes_per_second = 900}, now);
  EXPECT_TRUE(slow.take(900, now));
  now += 1s;
  EXPECT_FALSE(slow.take(900, now)) << "the hour's has 100 left";
  EXPECT_TRUE(slow.take(100, now));
  EXPECT_TRUE(slow.left(now) < 1);
  slow.give_back(50);
  EXPECT_EQ(slow.left(now), 50);
}

TEST_F(WriteBudget, ARateThatChangesBeginsWithAFullBucket) {
  write_budget changing({.bytes_per_day = 24'000}, now);
  EXPECT_TRUE(changing.take(900, now));
  changing.set({.bytes_per_day = 24'000}, now);
  EXPECT_EQ(changing.left(now), 100) << "the same rate goes on";
  changing.set({.bytes_per_day = 24'000, .bytes_per_second = 50}, now);
  EXPECT_EQ(changing.left(now), 50);
  changing.set({.bytes_per_day = 48'000, .bytes_per_second = 50}, now);
  EXPECT_TRUE(changing.take(50, now));
  changing.set({.bytes_per_day = 48'000}, now);
  EXPECT_EQ(changing.left(now), 1'950);
  changing.set({}, now);
  EXPECT_TRUE(changing.take(1'000'000, now));
}

} // namespace
} // namespace terrace
