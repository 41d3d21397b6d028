#include "transfer/write_plan.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using namespace std::chrono_literals;

struct WriteBudget : ::testing::Test {
  write_budget::time_point now{5h};
  write_budget budget{24'000, now}; // 1,000 an hour
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
  write_budget none(0, now);
  EXPECT_TRUE(none.take(UINT64_MAX, now));
}

} // namespace
} // namespace terrace
