#include "storage/path_set.hpp"

#include "storage/index_record.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using kind = found_path::kind;

found_path store(uint8_t id, uint16_t index, uint16_t count, uint64_t epoch = 1) {
  found_path one;
  one.what = kind::store;
  one.block.store.bytes[0] = id;
  one.block.path_index = index;
  one.block.path_count = count;
  one.block.epoch = epoch;
  return one;
}
found_path nothing(kind what) { return {what, {}, {}}; }
found_path foreign() { return {kind::other, {}, {errc::denied, "/b: somebody's thesis"}}; }

struct outcome {
  result<path_set> set;
  explicit operator bool() const { return set.has_value(); }
  std::string text() const { return set ? "" : set.error().text; }
};

outcome plan(const std::vector<found_path>& found, mismatch_rule rule) {
  std::vector<std::string> names;
  for (size_t i = 0; i < found.size(); ++i)
    names.push_back(std::string("/") + static_cast<char>('a' + i));
  return {plan_paths(names, found, rule)};
}

constexpr mismatch_rule all_rules[] = {mismatch_rule::refuse, mismatch_rule::adapt, mismatch_rule::wipe};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(PathSet, IsMadeWhereNothingIs) {
  for (mismatch_rule rule : all_rules) {
    auto made = plan({nothing(kind::missing), nothing(kind::blank)}, rule);
    ASSERT_TRUE(made) << made.text();
    EXPECT_FALSE(made.set->store);
    EXPECT_EQ(made.set->epoch, 1u);
    EXPECT_EQ(made.set->kept, (std::vector<bool>{false, false}));
  }
}

TEST(PathSet, GoesOnWithAHigherEpochThanAnyPathHas) {
  for (mismatch_rule rule : all_rules) {
    auto same = plan({store(7, 0, 3, 4), store(7, 1, 3, 9), store(7, 2, 3, 5)}, rule);
    ASSERT_TRUE(same) << same.text();
    EXPECT_EQ(same.set->store->bytes[0], 7);
    EXPECT_EQ(same.set->epoch, 10u);
    EXPECT_EQ(same.set->kept, (std::vector<bool>{true, true, true}));
  }
}

TEST(PathSet, ForgetsWhatAnyPathWasToldToForget) {
  auto a = store(7, 0, 2, 20), b = store(7, 1, 2, 12);
  space_fingerprint one{}, two{}, three{};
  one[0] = 1, two[0] = 2, three[0] = 3;
  a.block.forgotten_below = 9;
  a.block.floors = {{one, 10}, {two, 15}};
  b.block.floors = {{one, 12}, {three, 8}};
  auto set = plan({a, b}, mismatch_rule::refuse);
  ASSERT_TRUE(set);
  EXPECT_EQ(set.set->forgotten_below, 9u);
  EXPECT_EQ(set.set->floors, (std::vector<space_floor>{{one, 12}, {two, 15}}));
}

TEST(PathSet, ForgetsEverythingWhereTheirFloorsTogetherHaveNoRoom) {
  auto a = store(7, 0, 2, 500), b = store(7, 1, 2, 500);
  for (size_t i = 0; i < superblock::floors_max; ++i) {
    space_fingerprint in{};
    in[0] = static_cast<uint8_t>(i);
    a.block.floors.push_back({in, i + 1});
    in[1] = 1;
    b.block.floors.push_back({in, i + 1});
  }
  auto set = plan({a, b}, mismatch_rule::refuse);
  ASSERT_TRUE(set);
  EXPECT_TRUE(set.set->floors.empty());
  EXPECT_EQ(set.set->forgotten_below, 501u);
}

TEST(PathSet, AMissingFileOfAStoreIsRefusedUnlessPathsMayGo) {
  auto refused = plan({store(7, 0, 2), nothing(kind::missing)}, mismatch_rule::refuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.set.error().code, errc::denied);
  EXPECT_SAYS(refused.text(), "/b: there is no file; path 1 of 2 of store 07");
  EXPECT_SAYS(refused.text(), "as in /a");
  for (mismatch_rule rule : {mismatch_rule::adapt, mismatch_rule::wipe})
    EXPECT_EQ(plan({store(7, 0, 2), nothing(kind::missing)}, rule).set->kept,
              (std::vector<bool>{true, false}));
}

TEST(PathSet, ABlankFileTakesThePlaceOfALostPath) {
  auto set = plan({nothing(kind::blank), store(7, 1, 2, 3)}, mismatch_rule::refuse);
  ASSERT_TRUE(set) << set.text();
  EXPECT_EQ(set.set->kept, (std::vector<bool>{false, true}));
  EXPECT_EQ(set.set->epoch, 4u);
}

TEST(PathSet, AnotherOrderIsRefusedOrTakenAsItIs) {
  auto refused = plan({store(7, 1, 2), store(7, 0, 2)}, mismatch_rule::refuse);
  EXPECT_SAYS(refused.text(), "/a: this is path 1 of 2 of store 07");
  EXPECT_SAYS(refused.text(), "path 0 was expected");
  EXPECT_EQ(plan({store(7, 1, 2), store(7, 0, 2)}, mismatch_rule::adapt).set->kept,
            (std::vector<bool>{true, true}));
}

TEST(PathSet, AnotherNumberOfPathsIsRefusedOrTakenAsItIs) {
  auto more = plan({store(7, 0, 1), nothing(kind::blank)}, mismatch_rule::refuse);
  EXPECT_SAYS(more.text(), "/a: this is path 0 of 1 of store 07");
  EXPECT_SAYS(more.text(), "a store of 2 paths was expected");
  EXPECT_SAYS(more.text(), "\"adapt\"");
  auto fewer = plan({store(7, 1, 2)}, mismatch_rule::refuse);
  EXPECT_SAYS(fewer.text(), "a store of 1 path was expected");
  EXPECT_EQ(plan({store(7, 0, 1), nothing(kind::missing)}, mismatch_rule::adapt).set->kept,
            (std::vector<bool>{true, false}));
  EXPECT_EQ(plan({store(7, 1, 2)}, mismatch_rule::adapt).set->kept, (std::vector<bool>{true}));
}

TEST(PathSet, APathOfAnotherStoreIsRefusedUnlessItMayBeWiped) {
  std::vector<found_path> found{store(7, 0, 3), store(8, 1, 3), store(8, 2, 3)};
  for (mismatch_rule rule : {mismatch_rule::refuse, mismatch_rule::adapt}) {
    auto refused = plan(found, rule);
    EXPECT_SAYS(refused.text(), "/a: this is path 0 of 3 of store 07");
    EXPECT_SAYS(refused.text(), "store 08");
    EXPECT_SAYS(refused.text(), "as in /b, was expected");
  }
  auto wiped = plan(found, mismatch_rule::wipe);
  ASSERT_TRUE(wiped);
  EXPECT_EQ(wiped.set->store->bytes[0], 8) << "the store that more paths have stays";
  EXPECT_EQ(wiped.set->kept, (std::vector<bool>{false, true, true}));
}

TEST(PathSet, ACopyOfAPathIsRefusedOrWiped) {
  std::vector<found_path> found{store(7, 0, 2), store(7, 0, 2)};
  EXPECT_SAYS(plan(found, mismatch_rule::adapt).text(), "and so is /a: a copy?");
  EXPECT_FALSE(plan(found, mismatch_rule::refuse));
  EXPECT_EQ(plan(found, mismatch_rule::wipe).set->kept, (std::vector<bool>{true, false}));
}

TEST(PathSet, WhatIsNoStoreIsRefusedUnlessItMayBeWiped) {
  for (mismatch_rule rule : {mismatch_rule::refuse, mismatch_rule::adapt})
    EXPECT_EQ(plan({store(7, 0, 2), foreign()}, rule).text(), "/b: somebody's thesis");
  EXPECT_EQ(plan({store(7, 0, 2), foreign()}, mismatch_rule::wipe).set->kept,
            (std::vector<bool>{true, false}));
}

TEST(PathSet, BeginsAgainWhenItsEpochsAreUsedUp) {
  auto set = plan({store(7, 0, 2, 3), store(7, 1, 2, epoch_max)}, mismatch_rule::refuse);
  ASSERT_TRUE(set);
  EXPECT_FALSE(set.set->store);
  EXPECT_EQ(set.set->kept, (std::vector<bool>{false, false}));
}

} // namespace
} // namespace terrace
