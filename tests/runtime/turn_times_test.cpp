#include "runtime/turn_times.hpp"

#include <gtest/gtest.h>

#include <string>

namespace terrace::runtime {
namespace {

TEST(TurnTimes, AreCountedByKindAndLength) {
  turn_times times;
  const char *tier = "tier", *policy = "policy";
  times.add(tier, 10'000);
  times.add(tier, 10'001);
  times.add(policy, 20'000'000'000);
  times.add(policy, -5);
  const auto& kinds = times.kinds();
  EXPECT_EQ(kinds[0].name.load(), tier);
  EXPECT_EQ(kinds[0].turns[0].get(), 1U);
  EXPECT_EQ(kinds[0].turns[1].get(), 1U);
  EXPECT_EQ(kinds[0].sum_ns.get(), 20'001U);
  EXPECT_EQ(kinds[0].longest_ns.get(), 10'001U);
  EXPECT_EQ(kinds[1].name.load(), policy);
  EXPECT_EQ(kinds[1].turns[0].get(), 1U);
  EXPECT_EQ(kinds[1].turns.back().get(), 1U);
  EXPECT_EQ(kinds[2].name.load(), nullptr);
}

TEST(TurnTimes, KindsBeyondTheBoundAreCountedTogether) {
  turn_times times;
  std::array<char, 2 * turn_times::kinds_max> names{};
  for (const char& name : names)
    times.add(&name, 1);
  EXPECT_EQ(times.kinds().back().turns[0].get(), turn_times::kinds_max + 1);
  EXPECT_STREQ(times.kinds().back().name.load(), "other");
}

} // namespace
} // namespace terrace::runtime
