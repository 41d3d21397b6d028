#include "random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace terrace::simulation {
namespace {

TEST(SeededRandom, GivesTheNumbersThatTheStandardSpecifies) {
  seeded_random random(std::mt19937_64::default_seed);
  uint64_t last = 0;
  for (int i = 0; i < 10'000; ++i)
    last = random.next();
  EXPECT_EQ(last, 9981545732273789042U);
}

TEST(SeededRandom, DrawsTheSameFromTheSameSeed) {
  seeded_random random(7);
  EXPECT_EQ(random.below(1000), 15U);
  EXPECT_EQ(random.between(10, 12), 10U);
  EXPECT_EQ(random.swarm(1000), 15U);
  EXPECT_EQ(random.fork().below(1000), 284U);
}

TEST(SeededRandom, ReachesBothEndsOfARangeAndNothingOutside) {
  seeded_random random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 200; ++i)
    seen.insert(random.between(3, 6));
  EXPECT_EQ(seen, (std::set<uint64_t>{3, 4, 5, 6}));
  EXPECT_EQ(random.between(9, 9), 9U);
}

TEST(SeededRandom, HasNoChanceOfNothingAndEveryChanceOfAll) {
  seeded_random random(1);
  int happened = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(per_million));
    happened += random.chance(per_million / 4);
  }
  EXPECT_NEAR(happened, 250, 60);
}

TEST(SeededRandom, LeavesEachFaultOutOfHalfOfTheRuns) {
  seeded_random random(1);
  std::map<uint32_t, int> seen;
  for (int i = 0; i < 1000; ++i)
    ++seen[random.swarm(128)];
  EXPECT_NEAR(seen[0], 500, 80);
  EXPECT_EQ(seen.size(), 9U) << "0 and 128, 64, ... 1";
}

TEST(SeededRandom, ShufflesWithoutLosingAnything) {
  seeded_random random(1);
  std::vector<int> all{1, 2, 3, 4, 5, 6, 7, 8};
  auto before = all;
  random.shuffle(all);
  EXPECT_NE(all, before);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, before);
}

TEST(SeededRandom, AForkDoesNotMoveWithItsOrigin) {
  seeded_random one(5), other(5);
  auto fork_of_one = one.fork();
  auto fork_of_other = other.fork();
  for (int i = 0; i < 100; ++i)
    (void) one.next();
  EXPECT_EQ(fork_of_one.next(), fork_of_other.next());
}

} // namespace
} // namespace terrace::simulation
