#include "storage/path_set.hpp"

#include "index/index_record.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using kind = found_path::kind;

found_path volume(uint8_t id, uint16_t index, uint16_t count, uint64_t epoch = 1) {
  found_path one;
  one.state = kind::volume;
  one.block.volume.bytes[0] = id;
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

found_path dead() { return {kind::unreadable, {}, {errc::internal, "/x: Input/output error"}}; }

outcome plan(const std::vector<found_path>& found, mismatch_rule rule, bool may_lack_paths = false) {
  std::vector<std::string> names;
  for (size_t i = 0; i < found.size(); ++i)
    names.push_back(std::string("/") + static_cast<char>('a' + i));
  return {plan_paths(names, found, rule, may_lack_paths)};
}

/// Returns which paths the volume is opened without, as 0 and 1; or why it is not opened.
std::string left_out(const std::vector<found_path>& found, mismatch_rule rule) {
  auto made = plan(found, rule, true);
  if (!made)
    return made.text();
  std::string text;
  for (const error& why : made.set->left_out)
    text += why.code != errc::ok ? '1' : '0';
  return text;
}

constexpr mismatch_rule all_rules[] = {mismatch_rule::refuse, mismatch_rule::adapt, mismatch_rule::wipe};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(PathSet, IsMadeWhereNothingIs) {
  for (mismatch_rule rule : all_rules) {
    auto made = plan({nothing(kind::missing), nothing(kind::blank)}, rule);
    ASSERT_TRUE(made) << made.text();
    EXPECT_FALSE(made.set->volume);
    EXPECT_EQ(made.set->epoch, 1u);
    EXPECT_EQ(made.set->kept, (std::vector<bool>{false, false}));
  }
}

TEST(PathSet, ForgetsWhatAClearThatWaitedForItSays) {
  std::vector<std::string> names{"/a", "/b"};
  std::vector<found_path> found{volume(7, 0, 2, 4), volume(7, 1, 2, 9)};
  auto with = [&](const pending_clear& clear) {
    return plan_paths(names, found, mismatch_rule::refuse, false, std::span(&clear, 1));
  };
  EXPECT_EQ(with({})->forgotten_below, 10u) << "all that there is";
  EXPECT_EQ(with({space_fingerprint{1}})->floors, (std::vector<space_floor>{{space_fingerprint{1}, 10}}));
  volume_id here = found[0].block.volume;
  EXPECT_EQ(with({{}, here, 8})->forgotten_below, 8u);
  EXPECT_EQ(with({{}, here, 8})->epoch, 10u);
  EXPECT_EQ(with({{}, here, 20})->epoch, 20u) << "what is stored from now on counts";
  EXPECT_EQ(with({{}, volume_id{{9}}, 20})->forgotten_below, 0u) << "of another volume";
  EXPECT_EQ(with({{}, {}, 0, here})->forgotten_below, 0u) << "made since";
}

TEST(PathSet, GoesOnWithAHigherEpochThanAnyPathHas) {
  for (mismatch_rule rule : all_rules) {
    auto same = plan({volume(7, 0, 3, 4), volume(7, 1, 3, 9), volume(7, 2, 3, 5)}, rule);
    ASSERT_TRUE(same) << same.text();
    EXPECT_EQ(same.set->volume->bytes[0], 7);
    EXPECT_EQ(same.set->epoch, 10u);
    EXPECT_EQ(same.set->kept, (std::vector<bool>{true, true, true}));
  }
}

TEST(PathSet, ForgetsWhatAnyPathWasToldToForget) {
  auto a = volume(7, 0, 2, 20), b = volume(7, 1, 2, 12);
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
  auto a = volume(7, 0, 2, 500), b = volume(7, 1, 2, 500);
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
  auto refused = plan({volume(7, 0, 2), nothing(kind::missing)}, mismatch_rule::refuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.set.error().code, errc::denied);
  EXPECT_SAYS(refused.text(), "/b: the file does not exist; path 1 of 2 of volume 07");
  EXPECT_SAYS(refused.text(), "as in /a");
  for (mismatch_rule rule : {mismatch_rule::adapt, mismatch_rule::wipe})
    EXPECT_EQ(plan({volume(7, 0, 2), nothing(kind::missing)}, rule).set->kept,
              (std::vector<bool>{true, false}));
}

TEST(PathSet, ABlankFileTakesThePlaceOfALostPath) {
  auto set = plan({nothing(kind::blank), volume(7, 1, 2, 3)}, mismatch_rule::refuse);
  ASSERT_TRUE(set) << set.text();
  EXPECT_EQ(set.set->kept, (std::vector<bool>{false, true}));
  EXPECT_EQ(set.set->epoch, 4u);
}

TEST(PathSet, AnotherOrderIsRefusedOrTakenAsItIs) {
  auto refused = plan({volume(7, 1, 2), volume(7, 0, 2)}, mismatch_rule::refuse);
  EXPECT_SAYS(refused.text(), "/a: this is path 1 of 2 of volume 07");
  EXPECT_SAYS(refused.text(), "path 0 was expected");
  EXPECT_EQ(plan({volume(7, 1, 2), volume(7, 0, 2)}, mismatch_rule::adapt).set->kept,
            (std::vector<bool>{true, true}));
}

TEST(PathSet, AnotherNumberOfPathsIsRefusedOrTakenAsItIs) {
  auto more = plan({volume(7, 0, 1), nothing(kind::blank)}, mismatch_rule::refuse);
  EXPECT_SAYS(more.text(), "/a: this is path 0 of 1 of volume 07");
  EXPECT_SAYS(more.text(), "a volume of 2 paths was expected");
  EXPECT_SAYS(more.text(), "\"adapt\"");
  auto fewer = plan({volume(7, 1, 2)}, mismatch_rule::refuse);
  EXPECT_SAYS(fewer.text(), "a volume of 1 path was expected");
  EXPECT_EQ(plan({volume(7, 0, 1), nothing(kind::missing)}, mismatch_rule::adapt).set->kept,
            (std::vector<bool>{true, false}));
  EXPECT_EQ(plan({volume(7, 1, 2)}, mismatch_rule::adapt).set->kept, (std::vector<bool>{true}));
}

TEST(PathSet, APathOfAnotherStoreIsRefusedUnlessItMayBeWiped) {
  std::vector<found_path> found{volume(7, 0, 3), volume(8, 1, 3), volume(8, 2, 3)};
  for (mismatch_rule rule : {mismatch_rule::refuse, mismatch_rule::adapt}) {
    auto refused = plan(found, rule);
    EXPECT_SAYS(refused.text(), "/a: this is path 0 of 3 of volume 07");
    EXPECT_SAYS(refused.text(), "volume 08");
    EXPECT_SAYS(refused.text(), "as in /b, was expected");
  }
  auto wiped = plan(found, mismatch_rule::wipe);
  ASSERT_TRUE(wiped);
  EXPECT_EQ(wiped.set->volume->bytes[0], 8) << "the volume that more paths have stays";
  EXPECT_EQ(wiped.set->kept, (std::vector<bool>{false, true, true}));
}

TEST(PathSet, ACopyOfAPathIsRefusedOrWiped) {
  std::vector<found_path> found{volume(7, 0, 2), volume(7, 0, 2)};
  EXPECT_SAYS(plan(found, mismatch_rule::adapt).text(), "like /a. Is it a copy?");
  EXPECT_FALSE(plan(found, mismatch_rule::refuse));
  EXPECT_EQ(plan(found, mismatch_rule::wipe).set->kept, (std::vector<bool>{true, false}));
}

TEST(PathSet, WhatIsNoStoreIsRefusedUnlessItMayBeWiped) {
  for (mismatch_rule rule : {mismatch_rule::refuse, mismatch_rule::adapt})
    EXPECT_EQ(plan({volume(7, 0, 2), foreign()}, rule).text(), "/b: somebody's thesis");
  EXPECT_EQ(plan({volume(7, 0, 2), foreign()}, mismatch_rule::wipe).set->kept,
            (std::vector<bool>{true, false}));
}

TEST(PathSet, APathThatCannotBeReadIsRefusedWhateverTheRule) {
  for (mismatch_rule rule : all_rules)
    EXPECT_EQ(plan({volume(7, 0, 2), dead()}, rule).text(), "/x: Input/output error");
}

// ---- a volume that may lack paths ----

TEST(PathSet, GoesOnWithoutAPathThatCannotBeReadWhateverTheRule) {
  for (mismatch_rule rule : all_rules) {
    auto made = plan({dead(), volume(7, 1, 2, 4)}, rule, true);
    ASSERT_TRUE(made) << made.text();
    EXPECT_EQ(made.set->kept, (std::vector<bool>{false, true}));
    EXPECT_EQ(made.set->left_out[0].text, "/x: Input/output error");
    EXPECT_EQ(made.set->left_out[1].code, errc::ok);
    EXPECT_EQ(made.set->epoch, 5u);
  }
}

TEST(PathSet, GoesOnWithoutAMissingFileUnlessItMayBeMade) {
  EXPECT_EQ(left_out({volume(7, 0, 2), nothing(kind::missing)}, mismatch_rule::refuse), "01");
  EXPECT_EQ(left_out({volume(7, 0, 2), nothing(kind::missing)}, mismatch_rule::adapt), "00");
  EXPECT_EQ(left_out({volume(7, 0, 2), nothing(kind::blank)}, mismatch_rule::refuse), "00");
}

TEST(PathSet, GoesOnWithoutFilesOfOthersUnlessTheyMayBeWiped) {
  std::vector<found_path> found{volume(7, 0, 4), foreign(), volume(7, 2, 4), volume(8, 3, 4)};
  EXPECT_EQ(left_out(found, mismatch_rule::refuse), "0101");
  EXPECT_EQ(left_out(found, mismatch_rule::adapt), "0101");
  EXPECT_EQ(left_out(found, mismatch_rule::wipe), "0000");
}

TEST(PathSet, PathsInAnotherOrderOrNumberAreNotLeftOut) {
  EXPECT_SAYS(left_out({volume(7, 1, 2), volume(7, 0, 2)}, mismatch_rule::refuse), "path 0 was expected");
  EXPECT_SAYS(left_out({volume(7, 0, 2), dead(), volume(7, 1, 2)}, mismatch_rule::refuse),
              "a volume of 3 paths");
  EXPECT_SAYS(left_out({volume(7, 0, 2), volume(7, 0, 2)}, mismatch_rule::adapt), "Is it a copy?");
  EXPECT_SAYS(left_out({nothing(kind::missing), volume(7, 0, 1)}, mismatch_rule::refuse),
              "a volume of 2 paths");
}

TEST(PathSet, AStoreIsNotMadeWithoutOneOfItsPaths) {
  for (mismatch_rule rule : all_rules) {
    EXPECT_EQ(left_out({nothing(kind::blank), dead()}, rule), "/x: Input/output error");
    EXPECT_EQ(left_out({dead(), nothing(kind::missing)}, rule), "/x: Input/output error");
  }
  EXPECT_EQ(left_out({nothing(kind::blank), foreign()}, mismatch_rule::refuse), "/b: somebody's thesis");
}

TEST(PathSet, APathThatWasAwayHearsWhatTheOthersWereToldToForget) {
  auto stayed = volume(7, 0, 2, 12), away = volume(7, 1, 2, 9);
  stayed.block.missing = path_bit(1);
  space_fingerprint in{};
  stayed.block.floors = {{in, 11}};
  auto made = plan({stayed, away}, mismatch_rule::refuse);
  ASSERT_TRUE(made) << made.text();
  EXPECT_EQ(made.set->kept, (std::vector<bool>{true, true}));
  EXPECT_EQ(made.set->floors, (std::vector<space_floor>{{in, 11}}));
  EXPECT_EQ(made.set->forgotten_below, 0u);
}

TEST(PathSet, PathsThatWereEachOpenedWithoutTheOtherForgetEverything) {
  auto one = volume(7, 0, 3, 20), two = volume(7, 1, 3, 5), three = volume(7, 2, 3, 20);
  one.block.missing = path_bit(1);
  three.block.missing = path_bit(1);
  EXPECT_EQ(plan({one, two, three}, mismatch_rule::refuse).set->forgotten_below, 0u);
  two.block.missing = path_bit(0) | path_bit(2);
  two.block.floors = {// Its number is older than what `one` has of epoch 19, but it was cleared afterwards.
                      {space_fingerprint{}, 5}};
  auto made = plan({one, two, three}, mismatch_rule::refuse);
  ASSERT_TRUE(made) << made.text();
  EXPECT_EQ(made.set->forgotten_below, 21u);
  EXPECT_TRUE(made.set->floors.empty());
  EXPECT_EQ(plan({one, dead(), three}, mismatch_rule::refuse, true).set->forgotten_below, 0u);
}

TEST(PathSet, BeginsAgainWhenItsEpochsAreUsedUp) {
  auto set = plan({volume(7, 0, 2, 3), volume(7, 1, 2, epoch_max)}, mismatch_rule::refuse);
  ASSERT_TRUE(set);
  EXPECT_FALSE(set.set->volume);
  EXPECT_EQ(set.set->kept, (std::vector<bool>{false, false}));
}

} // namespace
} // namespace terrace
