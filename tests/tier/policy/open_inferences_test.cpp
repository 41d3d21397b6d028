#include "tier/policy/open_inferences.hpp"

#include <gtest/gtest.h>

using terrace::open_inferences;

TEST(OpenInferences, AreFoundUntilTheyEnd) {
  open_inferences open;
  open.begin(7, 1);
  EXPECT_TRUE(open.contains(7));
  EXPECT_EQ(open.find(7), 1u);
  EXPECT_EQ(open.end(7), 1u);
  EXPECT_FALSE(open.contains(7));
  EXPECT_EQ(open.find(7), 0u);
  EXPECT_EQ(open.end(7), 0u);
}

TEST(OpenInferences, TheOldestMakesRoomWhenClientsNeverTellTheEnd) {
  open_inferences open;
  for (uint64_t n = 1; n <= open_inferences::most + 2; ++n)
    open.begin(n, n);
  EXPECT_EQ(open.size(), open_inferences::most);
  EXPECT_FALSE(open.contains(2));
  EXPECT_TRUE(open.contains(3));
}

TEST(OpenInferences, ANumberThatIsUsedAgainIsYoungAgain) {
  open_inferences open;
  open.begin(1, 1);
  open.end(1);
  open.begin(1, 2);
  for (uint64_t n = 3; n < open_inferences::most + 2; ++n)
    open.begin(n, n);
  EXPECT_EQ(open.find(1), 2u); // the first entry in the order belongs to its earlier use
}
