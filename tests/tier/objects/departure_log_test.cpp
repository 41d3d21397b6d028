#include "tier/objects/departure_log.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

using namespace terrace;
using namespace terrace::test;

namespace {

uint32_t now = 0;

struct Departures : ::testing::Test {
  departure_log log{[] { return now; }};
  Departures() { now = 1'000; }

  /// Names of one set.
  static entry_key name(uint64_t number) { return {number + 1, 7}; }
};

} // namespace

TEST_F(Departures, KnowsThePolicyThatEvicted) {
  log.add(name(1), tier_kind::host, miss_reason::evicted);
  log.policy_is(tier_kind::host, "lru");
  log.policy_is(tier_kind::disk, "fifo");
  log.add(name(2), tier_kind::host, miss_reason::evicted);
  log.add(name(3), tier_kind::disk, miss_reason::evicted);
  log.policy_is(tier_kind::host, "arc");
  log.add(name(4), tier_kind::host, miss_reason::cleared);
  EXPECT_EQ(log.find(name(1))->policy, "");
  EXPECT_EQ(log.find(name(2))->policy, "lru") << "the policy at that time";
  EXPECT_EQ(log.find(name(3))->policy, "fifo");
  EXPECT_EQ(log.find(name(4))->policy, "") << "no policy clears";
  for (int i = 0; i < 1'000; ++i)
    log.policy_is(tier_kind::host, "policy " + std::to_string(i));
  log.add(name(5), tier_kind::host, miss_reason::evicted);
  EXPECT_EQ(log.find(name(5))->policy, "") << "so many names are not kept";
}

TEST_F(Departures, KnowsWhyWhenceAndHowLongAgo) {
  EXPECT_FALSE(log.find(name(1)));
  EXPECT_EQ(log.bytes(), 0u) << "no memory before the first record";
  log.add(name(1), tier_kind::host, miss_reason::evicted);
  now += 25;
  auto found = log.find(name(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->why, miss_reason::evicted);
  EXPECT_EQ(found->from, tier_kind::host);
  EXPECT_EQ(found->seconds_ago, 25u);
  EXPECT_FALSE(log.find(name(2)));
  EXPECT_FALSE(log.find({}));
  EXPECT_EQ(log.bytes(), size_t{1} << 20);
}

TEST_F(Departures, KnowsHowLongAnEvictedOneWasNotUsed) {
  using std::chrono::seconds;
  log.was_unused(name(1), tier_kind::host, seconds(5)); // nothing has left yet
  log.add(name(1), tier_kind::host, miss_reason::evicted);
  log.add(name(2), tier_kind::host, miss_reason::cleared);
  EXPECT_FALSE(log.find(name(1))->unused) << "its policy has not told it";
  log.was_unused(name(1), tier_kind::disk, seconds(5));
  EXPECT_FALSE(log.find(name(1))->unused) << "another tier's";
  log.was_unused(name(1), tier_kind::host, seconds(5));
  log.was_unused(name(2), tier_kind::host, seconds(5));
  log.was_unused(name(3), tier_kind::host, seconds(5));
  EXPECT_EQ(log.find(name(1))->unused, seconds(5));
  EXPECT_FALSE(log.find(name(2))->unused) << "nobody has evicted it";
  EXPECT_FALSE(log.find(name(3)));
  log.add(name(1), tier_kind::host, miss_reason::evicted);
  EXPECT_FALSE(log.find(name(1))->unused) << "another eviction";
}

TEST_F(Departures, KeepsThatTimeRoughly) {
  using std::chrono::seconds;
  for (int64_t s = 0; s < 2'000'000'000; s += 1 + s / 7) {
    auto kept = static_cast<double>(rough_time(seconds(s)).seconds()->count()), told = static_cast<double>(s);
    EXPECT_NEAR(kept, told, std::max(1.0, told * 0.05)) << s;
  }
  EXPECT_EQ(rough_time(seconds(-1)).seconds(), seconds(0));
  EXPECT_GT(rough_time(seconds::max()).seconds(), seconds(2'000'000'000));
  EXPECT_FALSE(rough_time().seconds());
}

TEST_F(Departures, TheLastOneCounts) {
  log.add(name(1), tier_kind::host, miss_reason::evicted);
  log.add(name(2), tier_kind::host, miss_reason::damaged);
  now += 5;
  log.add(name(1), tier_kind::disk, miss_reason::cleared);
  auto found = log.find(name(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->why, miss_reason::cleared);
  EXPECT_EQ(found->from, tier_kind::disk);
  EXPECT_EQ(found->seconds_ago, 0u);
  ASSERT_TRUE(log.find(name(2)));
  EXPECT_EQ(log.find(name(2))->why, miss_reason::damaged) << "the others keep theirs";
}

TEST_F(Departures, AFullSetForgetsTheOldest) {
  for (uint64_t i = 0; i < departure_log::set_records; ++i)
    log.add(name(i), tier_kind::host, miss_reason::evicted);
  log.add(name(0), tier_kind::host, miss_reason::evicted); // the newest now
  log.add(name(100), tier_kind::host, miss_reason::evicted);
  EXPECT_TRUE(log.find(name(0)));
  EXPECT_FALSE(log.find(name(1)));
  for (uint64_t i = 2; i < departure_log::set_records; ++i)
    EXPECT_TRUE(log.find(name(i))) << i;
  EXPECT_TRUE(log.find(name(100)));
}

TEST_F(Departures, KeepsMostOfTheLastOnes) {
  constexpr uint64_t some = departure_log::records_max / 4;
  for (uint64_t i = 0; i < some; ++i)
    log.add(to_entry_key(key_of(i)), tier_kind::host, miss_reason::evicted);
  uint64_t known = 0;
  for (uint64_t i = 0; i < some; ++i)
    known += log.find(to_entry_key(key_of(i))) ? 1 : 0;
  EXPECT_GT(known, some * 99 / 100);
}

TEST_F(Departures, WhatATierBelowDidNotTakeIsNotAdmittedWhenItLeaves) {
  log.policy_is(tier_kind::host, "lru");
  log.add_refusal(name(1), tier_kind::disk, refusal_reason::endurance);
  now += 5;
  log.add(name(1), tier_kind::host, miss_reason::evicted);
  now += 7;
  auto found = log.find(name(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->why, miss_reason::not_admitted);
  EXPECT_EQ(found->from, tier_kind::disk);
  EXPECT_EQ(found->refused, refusal_reason::endurance);
  EXPECT_EQ(found->seconds_ago, 7u) << "since it left host memory";
  EXPECT_EQ(found->policy, "");
}

TEST_F(Departures, WhatWasTakenLaterOrRemovedIsNotRefused) {
  for (uint64_t i = 0; i < 3; ++i)
    log.add_refusal(name(i), tier_kind::disk, refusal_reason::admission);
  log.add(name(0), tier_kind::disk, miss_reason::evicted); // it was admitted at another time
  log.add(name(1), tier_kind::host, miss_reason::cleared);
  log.add(name(2), tier_kind::remote, miss_reason::evicted); // the tier below the disk has had it
  EXPECT_EQ(log.find(name(0))->why, miss_reason::evicted);
  EXPECT_EQ(log.find(name(1))->why, miss_reason::cleared);
  EXPECT_EQ(log.find(name(2))->from, tier_kind::remote);
  for (uint64_t i = 0; i < 3; ++i)
    EXPECT_FALSE(log.find(name(i))->refused) << i;
}

TEST_F(Departures, AStoreThatIsRefusedCountsAfterAnEarlierDeparture) {
  log.add(name(1), tier_kind::disk, miss_reason::evicted);
  log.add_refusal(name(1), tier_kind::host, refusal_reason::no_room);
  EXPECT_EQ(log.find(name(1))->why, miss_reason::not_admitted);
  EXPECT_EQ(log.find(name(1))->from, tier_kind::host);
  log.add(name(1), tier_kind::host, miss_reason::evicted);
  EXPECT_EQ(log.find(name(1))->why, miss_reason::evicted) << "it was stored at another time";
}
