#include "base/tier_properties.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(TierProperties, EachTierHasAName) {
  for (tier_kind tier : all_tiers)
    EXPECT_EQ(tier_named(to_string(tier)), tier);
  EXPECT_EQ(tier_named("none"), std::nullopt);
  EXPECT_EQ(tier_named("Host"), std::nullopt);
}

TEST(TierProperties, OthersAreFasterOrSlowerThanMemory) {
  EXPECT_TRUE(faster_than_memory(tier_kind::gpu));
  EXPECT_FALSE(faster_than_memory(tier_kind::host));
  EXPECT_FALSE(slower_than_memory(tier_kind::host));
  EXPECT_TRUE(slower_than_memory(tier_kind::disk));
  EXPECT_TRUE(slower_than_memory(tier_kind::remote));
  EXPECT_FALSE(slower_than_memory(nowhere)) << "it is no tier";
  EXPECT_FALSE(faster_than_memory(nowhere));
}
