#include "tier/policy/edge_credit.hpp"

#include <gtest/gtest.h>

using terrace::edge_credit;

TEST(EdgeCredit, HasCreditForSoManyObjects) {
  edge_credit feed;
  EXPECT_TRUE(feed.offer(edge_credit::waiting_max));
  EXPECT_FALSE(feed.offer(1)) << "it waits nevertheless";
  EXPECT_EQ(feed.waiting(), edge_credit::waiting_max + 1);
  feed.heard(edge_credit::waiting_max);
  EXPECT_TRUE(feed.offer(edge_credit::waiting_max - 1));
  feed.heard(edge_credit::waiting_max);
  EXPECT_EQ(feed.waiting(), 0U);
}

TEST(EdgeCredit, ALongChainHasCreditWhenNothingElseWaits) {
  edge_credit feed;
  EXPECT_TRUE(feed.offer(4 * edge_credit::waiting_max));
  EXPECT_FALSE(feed.offer(1));
}
