#include "memory/region_budget.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace terrace::test {
namespace {

struct RegionBudget : ::testing::Test {
  region_budget_ptr daemon = region_budget::make({"the daemon", 100, 3});
  region_budget_ptr group = region_budget::make({"the group", 80}, daemon);
  region_budget_ptr one = region_budget::make({"the connection", 50}, group);
  region_budget_ptr other = region_budget::make({"the connection", 50}, group);
};

TEST_F(RegionBudget, CountsAChargeAtEveryLevelUntilItEnds) {
  {
    auto taken = one->take(30).value();
    auto moved = std::move(taken);
    EXPECT_EQ(one->bytes(), 30u);
    EXPECT_EQ(group->bytes(), 30u);
    EXPECT_EQ(daemon->bytes(), 30u);
    EXPECT_EQ(daemon->regions(), 1u);
    EXPECT_EQ(other->bytes(), 0u);
  }
  EXPECT_EQ(one->bytes(), 0u);
  EXPECT_EQ(daemon->bytes(), 0u);
  EXPECT_EQ(daemon->regions(), 0u);
}

TEST_F(RegionBudget, ARefusalTakesNothingAndNamesTheBoundOfItsLevel) {
  auto held = one->take(50).value();
  auto own = one->take(1);
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().code, errc::busy);
  EXPECT_NE(own.error().text.find("bound of 50;"), std::string::npos) << own.error().text;
  auto shared = other->take(31);
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().code, errc::busy);
  EXPECT_NE(shared.error().text.find("bound of 80;"), std::string::npos) << shared.error().text;
  EXPECT_EQ(other->bytes(), 0u);
  EXPECT_EQ(group->bytes(), 50u);
  EXPECT_EQ(daemon->regions(), 1u);
  EXPECT_TRUE(other->take(30));
}

TEST_F(RegionBudget, WhatCanNeverFitIsABadRequest) {
  auto refused = one->take(51);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("the connection may have 50 in all"), std::string::npos)
      << refused.error().text;
}

TEST_F(RegionBudget, BoundsTheNumberOfMappings) {
  std::vector<region_charge> held;
  for (int i = 0; i < 3; ++i)
    held.push_back(one->take(1).value());
  auto refused = other->take(1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("the daemon has 3 regions"), std::string::npos) << refused.error().text;
  EXPECT_EQ(daemon->bytes(), 3u);
  held.pop_back();
  EXPECT_TRUE(other->take(1));
}

TEST_F(RegionBudget, ThreadsNeverExceedIt) {
  auto most = region_budget::make({"the daemon", 10});
  std::vector<std::thread> threads;
  std::atomic<bool> exceeded{false};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round)
        if (auto taken = most->take(4))
          exceeded = exceeded || most->bytes() > 10;
    });
  for (std::thread& each : threads)
    each.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(most->bytes(), 0u);
}

} // namespace
} // namespace terrace::test
