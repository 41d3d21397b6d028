#include "memory/arena_resize.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using step = arena_resize::step;

namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t segment = 4 * page;

struct ArenaResize : ::testing::Test {
  std::shared_ptr<segmented_arena> memory = made();
  arena_resize resize{memory};

  static std::shared_ptr<segmented_arena> made() {
    auto created = segmented_arena::create({.name = "test", .bytes = 4 * segment, .segment_bytes = segment});
    EXPECT_TRUE(created) << created.error().text;
    return std::move(*created);
  }
  step begin() {
    auto begun = resize.begin();
    EXPECT_TRUE(begun);
    return begun ? *begun : step::nothing;
  }
};

} // namespace

TEST_F(ArenaResize, NothingIsDoneForTheSizeItHas) {
  EXPECT_EQ(begin(), step::nothing);
  resize.want(memory->size());
  EXPECT_EQ(begin(), step::nothing);
}

TEST_F(ArenaResize, NewSegmentsJoinWhenTheyAreCommitted) {
  resize.want(6 * segment);
  EXPECT_EQ(begin(), step::grow);
  EXPECT_TRUE(resize.growing());
  auto joined = resize.end_growth();
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->first, 4u);
  EXPECT_EQ(joined->end, 6u);
  EXPECT_EQ(joined->bytes, 2 * segment);
  EXPECT_EQ(joined->gap_bytes, 0u);
  EXPECT_EQ(memory->size(), 6 * segment);
  EXPECT_TRUE(resize.take_leaving().empty());
}

TEST_F(ArenaResize, WhatCannotBeCommittedIsTakenBack) {
  resize.want(2 * segment + page);
  EXPECT_EQ(begin(), step::grow) << "two segments leave, and a page comes back";
  EXPECT_FALSE(resize.end_growth(true));
  EXPECT_EQ(memory->size(), 4 * segment);
  EXPECT_TRUE(resize.take_leaving().empty());
  EXPECT_FALSE(resize.growing());
}

TEST_F(ArenaResize, WholeSegmentsLeaveFromTheEnd) {
  resize.want(3 * segment);
  EXPECT_EQ(begin(), step::remove);
  auto leaving = resize.take_leaving();
  ASSERT_EQ(leaving.size(), 1u);
  EXPECT_EQ(leaving[0].first, 3u);
  EXPECT_EQ(leaving[0].second.offset, 3 * segment);
  EXPECT_EQ(leaving[0].second.bytes, segment);
  EXPECT_EQ(memory->size(), 3 * segment);
  EXPECT_TRUE(resize.take_leaving().empty());
}

TEST_F(ArenaResize, WhatIsTooMuchOfASegmentComesBackBeforeItLeaves) {
  resize.want(3 * segment + page);
  EXPECT_EQ(begin(), step::grow);
  auto joined = resize.end_growth();
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->bytes, page);
  EXPECT_EQ(resize.take_leaving().size(), 1u);
  EXPECT_EQ(memory->size(), 3 * segment + page);
}

TEST_F(ArenaResize, OfSeveralSizesTheLastCountsOnceTheChangeInProgressIsComplete) {
  resize.want(5 * segment);
  EXPECT_EQ(begin(), step::grow);
  resize.want(8 * segment);
  resize.want(3 * segment);
  EXPECT_EQ(begin(), step::nothing);
  resize.end_growth();
  EXPECT_EQ(begin(), step::remove);
  resize.take_leaving();
  EXPECT_EQ(memory->size(), 3 * segment);
}
