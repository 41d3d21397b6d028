#include "tier/policy_feed.hpp"

#include <gtest/gtest.h>

using terrace::policy_feed;

TEST(PolicyFeed, HasCreditForSoManyObjects) {
  policy_feed feed;
  EXPECT_TRUE(feed.offer(policy_feed::waiting_max));
  EXPECT_FALSE(feed.offer(1)) << "it waits nevertheless";
  EXPECT_EQ(feed.waiting(), policy_feed::waiting_max + 1);
  feed.heard(policy_feed::waiting_max);
  EXPECT_TRUE(feed.offer(policy_feed::waiting_max - 1));
  feed.heard(policy_feed::waiting_max);
  EXPECT_EQ(feed.waiting(), 0U);
}

TEST(PolicyFeed, ALongChainHasCreditWhenNothingElseWaits) {
  policy_feed feed;
  EXPECT_TRUE(feed.offer(4 * policy_feed::waiting_max));
  EXPECT_FALSE(feed.offer(1));
}
