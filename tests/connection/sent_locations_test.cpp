#include "connection/client_holdings.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(SentLocations, RemembersTheLastObjectOfANumber) {
  sent_locations told;
  EXPECT_FALSE(told.has(0, object_id{7}));
  EXPECT_TRUE(told.add(0, object_id{7}));
  EXPECT_FALSE(told.add(0, object_id{7})) << "told already";
  EXPECT_TRUE(told.has(0, object_id{7}));
  EXPECT_TRUE(told.add(0, object_id{8})) << "written again elsewhere";
  EXPECT_FALSE(told.has(0, object_id{7}));
}

TEST(SentLocations, NumbersMayBeFarApart) {
  sent_locations told;
  EXPECT_TRUE(told.add(1'000'000, object_id{1}));
  EXPECT_TRUE(told.add(3, object_id{2}));
  EXPECT_TRUE(told.has(1'000'000, object_id{1}));
  EXPECT_FALSE(told.has(999'999, object_id{1}));
  EXPECT_FALSE(told.has(2'000'000, object_id{1}));
}
