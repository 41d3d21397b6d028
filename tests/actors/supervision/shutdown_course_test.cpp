#include "actors/supervision/supervisor_state.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using phase = shutdown_course::phase;

TEST(ShutdownCourse, BeginsOnce) {
  shutdown_course course;
  EXPECT_TRUE(course.serving());
  EXPECT_FALSE(course.next()) << "nothing to wait for, but nobody asked for it";
  EXPECT_TRUE(course.begin());
  EXPECT_FALSE(course.begin());
  EXPECT_EQ(course.now(), phase::closing_listeners);
}

TEST(ShutdownCourse, PhasesFollowEachOtherWhenTheyWaitForNothing) {
  shutdown_course course;
  course.begin();
  EXPECT_EQ(course.next(), phase::draining);
  EXPECT_EQ(course.next(), phase::settling);
  EXPECT_EQ(course.next(), phase::ending);
  EXPECT_EQ(course.next(), phase::ended);
  EXPECT_FALSE(course.next());
}

TEST(ShutdownCourse, APhaseWaitsForAllOfItsOwn) {
  shutdown_course course;
  course.begin();
  course.await();
  course.await();
  course.arrived(phase::closing_listeners);
  EXPECT_FALSE(course.next());
  course.arrived(phase::closing_listeners);
  EXPECT_EQ(course.next(), phase::draining);
}

TEST(ShutdownCourse, TiersThatDoNotSettleInTimeAreNotWaitedFor) {
  shutdown_course course;
  course.begin();
  course.next();
  EXPECT_FALSE(course.cut_short(phase::settling)) << "it has not begun";
  course.next();
  course.await();
  EXPECT_FALSE(course.next());
  EXPECT_TRUE(course.cut_short(phase::settling));
  EXPECT_EQ(course.next(), phase::ending);
  course.await();
  course.arrived(phase::settling); // too late
  EXPECT_FALSE(course.next());
  course.arrived(phase::ending);
  EXPECT_EQ(course.next(), phase::ended);
}
