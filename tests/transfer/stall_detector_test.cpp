#include "transfer/device_health.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using tags = std::vector<uint64_t>;

TEST(StallWatch, AnOperationIsStalledOnceItHasSeenMoreTicksThanPatience) {
  stall_detector watch(2);
  watch.started(0, 0);
  EXPECT_EQ(watch.tick(), tags{});
  EXPECT_EQ(watch.tick(), tags{});
  EXPECT_EQ(watch.tick(), tags{0});
  EXPECT_EQ(watch.stalled(0), 1u);
  EXPECT_EQ(watch.stalled(1), 0u);
}

TEST(StallWatch, IsToldOnceAndCountsUntilItEnds) {
  stall_detector watch(0);
  watch.started(0, 1);
  EXPECT_EQ(watch.tick(), tags{0});
  EXPECT_EQ(watch.tick(), tags{});
  EXPECT_EQ(watch.stalled(1), 1u);
  EXPECT_TRUE(watch.ended(0));
  EXPECT_EQ(watch.stalled(1), 0u);
}

TEST(StallWatch, LaterOperationsHaveTheirOwnTime) {
  stall_detector watch(1);
  watch.started(0, 0);
  EXPECT_EQ(watch.tick(), tags{});
  watch.started(1, 0);
  EXPECT_EQ(watch.tick(), tags{0});
  EXPECT_EQ(watch.tick(), tags{1});
}

TEST(StallWatch, ATagThatIsUsedAgainStartsAfresh) {
  stall_detector watch(1);
  watch.started(0, 0);
  watch.tick();
  EXPECT_FALSE(watch.ended(0));
  watch.started(0, 0);
  EXPECT_EQ(watch.tick(), tags{});
  EXPECT_EQ(watch.tick(), tags{0});
}

TEST(StallWatch, NeedsTicksOnlyWhileSomethingMoves) {
  stall_detector watch(0);
  EXPECT_FALSE(watch.worth_a_tick());
  watch.started(0, 0);
  watch.started(1, 0);
  EXPECT_TRUE(watch.worth_a_tick());
  EXPECT_FALSE(watch.ended(1));
  EXPECT_TRUE(watch.worth_a_tick());
  watch.tick();
  EXPECT_FALSE(watch.worth_a_tick());
  EXPECT_TRUE(watch.ended(0));
  EXPECT_FALSE(watch.worth_a_tick());
}

} // namespace
} // namespace terrace
