#include "base/countdown.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(Countdown, IsDoneWhenTheLastHasEnded) {
  int done = 0;
  countdown all([&] { ++done; });
  all.begin();
  all.begin();
  all.end();
  all.end();
  EXPECT_EQ(done, 0) << "others may still begin";
  all.end();
  EXPECT_EQ(done, 1);
}

TEST(Countdown, OfNothingIsDoneAtOnce) {
  int done = 0;
  countdown all([&] { ++done; });
  all.end();
  EXPECT_EQ(done, 1);
}
