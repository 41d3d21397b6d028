#include "base/change_count.hpp"

#include <gtest/gtest.h>

#include <memory>

using namespace terrace;

namespace {

TEST(ChangeCount, WaitersAreToldOnceUnlessTheyHaveEnded) {
  change_count count;
  auto live = std::make_shared<request_context>(), over = std::make_shared<request_context>();
  int told = 0;
  count.wait(0, live, [&] { ++told; });
  count.wait(0, over, [&] { FAIL() << "its request has ended"; });
  over->ended = errc::deadline;
  count.wait(0, live, [] {}); // looks through those that wait
  count.add();
  EXPECT_EQ(told, 1);
  count.add();
  EXPECT_EQ(told, 1);
  count.wait(1, live, [&] { ++told; });
  EXPECT_EQ(told, 2) << "at once";
}

TEST(ChangeCount, SoManyChangesAreToldOnceAndTheNumberNeverFalls) {
  change_count count;
  int told = 0;
  count.wait(2, std::make_shared<request_context>(), [&] { ++told; });
  count.reach(5);
  EXPECT_EQ(told, 1);
  count.reach(4); // of two threads, the one that was first comes last
  EXPECT_EQ(count.now(), 5u);
  count.wait(4, std::make_shared<request_context>(), [&] { ++told; });
  EXPECT_EQ(told, 2);
}

} // namespace
