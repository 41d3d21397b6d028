#include "tier/policy/policy_clock.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(PolicyClock, StandsWhereItWasTold) {
  policy_clock clock(clock_source::told);
  EXPECT_EQ(clock.now(), 0u);
  clock.hear(5'000);
  EXPECT_EQ(clock.now(), 5'000u);
  clock.hear(std::nullopt);
  EXPECT_EQ(clock.now(), 5'000u);
  clock.hear(7'000);
  EXPECT_EQ(clock.now(), 7'000u);
}

TEST(PolicyClock, NeverGoesBack) {
  policy_clock clock(clock_source::told);
  clock.hear(7'000);
  clock.hear(5'000);
  EXPECT_EQ(clock.now(), 7'000u);
  clock.hear(7'001);
  EXPECT_EQ(clock.now(), 7'001u);
}

TEST(PolicyClock, MakesNoStepBeyondItsLongestWhateverMomentClientsCountFrom) {
  policy_clock clock(clock_source::told);
  uint64_t since_1970 = 1'700'000'000'000'000'000;
  clock.hear(since_1970);
  EXPECT_EQ(clock.now(), policy_clock::step_max);
  clock.hear(since_1970 + 10);
  EXPECT_EQ(clock.now(), policy_clock::step_max + 10);
}

TEST(PolicyClock, OfTheMachineDoesNotListen) {
  policy_clock clock;
  clock.hear(~policy_time{0});
  EXPECT_LT(clock.now(), ~policy_time{0} / 2);
  policy_time before = clock.now();
  EXPECT_LE(before, clock.now());
}
