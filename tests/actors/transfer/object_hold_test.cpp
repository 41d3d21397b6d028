#include "group_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct ObjectHold : group_fixture {
  ObjectHold() {
    start({.host_objects = 8});
    store(0, 4);
  }
  uint64_t held_objects() {
    settle();
    return report(group->host).held_objects;
  }
};

} // namespace

TEST_F(ObjectHold, KeepsOnlyWhatItIsTold) {
  auto held = hold(group->host, 0, 4);
  ASSERT_EQ(held_objects(), 4u);
  held->keep_only({false, true, false, true});
  EXPECT_EQ(held_objects(), 2u);
  EXPECT_FALSE(held->places()[0].present());
  EXPECT_TRUE(held->places()[1].present());
  EXPECT_FALSE(held->places()[2].present());
  EXPECT_TRUE(held->places()[3].present());
  held.reset();
  EXPECT_EQ(held_objects(), 0u);
}

TEST_F(ObjectHold, WhatItLetGoMayLeaveAndTheRestMayNot) {
  auto held = hold(group->host, 0, 4);
  held->keep_only({true, true, false, false});
  store(100, 6);
  EXPECT_EQ(present(group->host, 0, 4), 2u);
}

TEST_F(ObjectHold, KeepingAllOrTwiceOrOfNothingChangesNothing) {
  auto held = hold(group->host, 3, 2); // the second is not there
  ASSERT_EQ(held_objects(), 1u);
  held->keep_only({true, true});
  held->keep_only({true, false});
  EXPECT_EQ(held_objects(), 1u);
  held->keep_only({false, false});
  held->keep_only({false, false});
  EXPECT_EQ(held_objects(), 0u);
  held.reset();
  EXPECT_EQ(held_objects(), 0u);
}
