#include "index/resident.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {
constexpr object_state all[] = {object_state::free, object_state::reserved, object_state::published,
                                object_state::demoting, object_state::removed};
}

TEST(ObjectState, OnlyAReservationBeginsAnObject) {
  for (object_state from : all) {
    EXPECT_EQ(may_move(from, object_state::reserved), from == object_state::free) << to_string(from);
    EXPECT_FALSE(may_move(from, from)) << to_string(from);
  }
}

TEST(ObjectState, EveryObjectCanEnd) {
  for (object_state from : all)
    EXPECT_EQ(may_move(from, object_state::free), from != object_state::free) << to_string(from);
}

TEST(ObjectState, WhatIsRemovedNeverComesBack) {
  for (object_state to : all)
    EXPECT_EQ(may_move(object_state::removed, to), to == object_state::free) << to_string(to);
}

TEST(ObjectState, WhatIsInTheIndexCanBeTakenOutWhileItsBytesAreInUse) {
  for (object_state from : all)
    EXPECT_EQ(may_move(from, object_state::removed), readable(from) || from == object_state::reserved)
        << to_string(from);
}

TEST(ObjectState, ADemotionMayBeTakenBack) {
  EXPECT_TRUE(may_move(object_state::published, object_state::demoting));
  EXPECT_TRUE(may_move(object_state::demoting, object_state::published));
  EXPECT_FALSE(may_move(object_state::reserved, object_state::demoting));
}
