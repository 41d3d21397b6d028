// Slots that groups share.
#include "base/slot_shares.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace terrace;

namespace {

uint64_t fill(slot_shares& slots, uint64_t group) {
  uint64_t taken = 0;
  while (slots.take(group))
    ++taken;
  return taken;
}

TEST(SlotShares, OneGroupAloneMayTakeAll) {
  slot_shares slots(10, 1);
  EXPECT_EQ(fill(slots, 1), 10u);
}

TEST(SlotShares, NoGroupCanTakeWhatIsGuaranteedToAnother) {
  slot_shares slots(16, 2);
  EXPECT_EQ(slots.guaranteed(), 4u);
  EXPECT_EQ(fill(slots, 1), 12u);
  EXPECT_EQ(slots.most(), 12u);
  EXPECT_EQ(fill(slots, 2), 4u);
  slots.give_back(1);
  EXPECT_TRUE(slots.take(2)) << "it was a common one";
  EXPECT_FALSE(slots.take(1));
}

TEST(SlotShares, AGuaranteedSlotThatIsGivenBackStaysGuaranteed) {
  slot_shares slots(16, 2);
  EXPECT_EQ(fill(slots, 2), 12u);
  EXPECT_EQ(fill(slots, 1), 4u);
  slots.give_back(1);
  EXPECT_FALSE(slots.take(2));
  EXPECT_TRUE(slots.take(1));
}

TEST(SlotShares, FewerSlotsThanGroupsAreCommon) {
  slot_shares slots(2, 3);
  EXPECT_EQ(slots.guaranteed(), 0u);
  EXPECT_EQ(fill(slots, 1), 2u);
  EXPECT_EQ(fill(slots, 2), 0u);
}

/// Never more than there are, and never fewer than guaranteed.
TEST(SlotShares, HoldForRandomUse) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    uint64_t count = 1 + random() % 40, groups = 1 + random() % 5;
    slot_shares slots(count, groups);
    std::vector<uint64_t> taken(groups);
    uint64_t all = 0;
    for (int step = 0; step < 500; ++step) {
      uint64_t group = random() % groups;
      if (random() % 3 != 0) {
        bool got = slots.take(group);
        EXPECT_TRUE(got || taken[group] >= slots.guaranteed());
        taken[group] += got;
        all += got;
      } else if (taken[group] != 0) {
        slots.give_back(group);
        --taken[group];
        --all;
      }
      ASSERT_LE(all, count);
    }
  }
}

} // namespace
