#include "base/steps.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace terrace {
namespace {

steps count_to(size_t end, size_t per_step, std::vector<size_t>& seen) {
  step_pace pace(per_step);
  for (size_t i = 0; i < end; ++i) {
    seen.push_back(i);
    if (pace.due() && i + 1 != end)
      co_yield {};
  }
}

steps twice(std::vector<size_t>& seen) {
  for (int i = 0; i < 2; ++i) {
    steps part = count_to(3, 2, seen);
    while (part.next())
      co_yield {};
  }
}

steps hold(std::shared_ptr<int> what) {
  co_yield {};
  *what = 1;
}

steps fail_later() {
  co_yield {};
  throw std::bad_alloc();
}

TEST(Steps, EachDoesSoMuch) {
  std::vector<size_t> seen;
  auto work = count_to(5, 2, seen);
  EXPECT_TRUE(seen.empty()) << "nothing is done before the first";
  EXPECT_TRUE(work.next());
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_TRUE(work.next());
  EXPECT_FALSE(work.next());
  EXPECT_EQ(seen.size(), 5U);
  EXPECT_FALSE(work.next()) << "it stays done";
  EXPECT_EQ(seen.size(), 5U);
}

TEST(Steps, ShortWorkIsOne) {
  std::vector<size_t> seen;
  EXPECT_FALSE(count_to(2, 2, seen).next());
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_FALSE(steps().next());
}

TEST(Steps, StepsOfAPartAreThoseOfTheWhole) {
  std::vector<size_t> seen;
  auto work = twice(seen);
  size_t yielded = 0;
  while (work.next())
    ++yielded;
  EXPECT_EQ(yielded, 2U);
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2, 0, 1, 2}));
}

TEST(Steps, WhatIsNotFinishedGivesBackWhatItHolds) {
  auto what = std::make_shared<int>(0);
  {
    auto work = hold(what);
    EXPECT_TRUE(work.next());
    EXPECT_EQ(what.use_count(), 2);
    auto moved = std::move(work);
    EXPECT_FALSE(work.next());
  }
  EXPECT_EQ(what.use_count(), 1);
  EXPECT_EQ(*what, 0);
}

TEST(Steps, AnErrorComesOutOfTheStepThatMadeIt) {
  auto work = fail_later();
  EXPECT_TRUE(work.next());
  EXPECT_THROW(work.next(), std::bad_alloc);
  EXPECT_FALSE(work.next());
}

TEST(StepPace, CountsWork) {
  step_pace pace(10);
  EXPECT_FALSE(pace.due(9));
  EXPECT_TRUE(pace.due(1));
  EXPECT_TRUE(pace.due(100));
  EXPECT_FALSE(pace.due());
}

} // namespace
} // namespace terrace
