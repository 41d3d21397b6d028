#include "actors/supervision/supervisor_state.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using phase = shutdown_order::phase;

TEST(ShutdownOrder, BeginsOnce) {
  shutdown_order order;
  EXPECT_TRUE(order.serving());
  EXPECT_FALSE(order.next()) << "nothing to wait for, but nobody asked for it";
  EXPECT_TRUE(order.begin());
  EXPECT_FALSE(order.begin());
  EXPECT_EQ(order.now(), phase::closing_listeners);
}

TEST(ShutdownOrder, PhasesFollowEachOtherWhenTheyWaitForNothing) {
  shutdown_order order;
  order.begin();
  EXPECT_EQ(order.next(), phase::draining);
  EXPECT_EQ(order.next(), phase::settling);
  EXPECT_EQ(order.next(), phase::ending);
  EXPECT_EQ(order.next(), phase::ended);
  EXPECT_FALSE(order.next());
}

TEST(ShutdownOrder, APhaseWaitsForAllOfItsOwn) {
  shutdown_order order;
  order.begin();
  order.await();
  order.await();
  order.arrived(phase::closing_listeners);
  EXPECT_FALSE(order.next());
  order.arrived(phase::closing_listeners);
  EXPECT_EQ(order.next(), phase::draining);
}

TEST(ShutdownOrder, TiersThatDoNotSettleInTimeAreNotWaitedFor) {
  shutdown_order order;
  order.begin();
  order.next();
  EXPECT_FALSE(order.cut_short(phase::settling)) << "it has not begun";
  order.next();
  order.await();
  EXPECT_FALSE(order.next());
  EXPECT_TRUE(order.cut_short(phase::settling));
  EXPECT_EQ(order.next(), phase::ending);
  order.await();
  order.arrived(phase::settling); // too late
  EXPECT_FALSE(order.next());
  order.arrived(phase::ending);
  EXPECT_EQ(order.next(), phase::ended);
}
