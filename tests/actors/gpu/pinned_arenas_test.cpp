#include "actors/gpu/daemon/pinned_arenas.hpp"

#include <gtest/gtest.h>

namespace terrace::gpu {
namespace {

constexpr uint64_t piece = 2 << 20;
using kind = pinned_arenas::step::kind;

std::shared_ptr<const arena> segment_of(uint64_t bytes) {
  return std::make_shared<const arena>(arena::create({.bytes = bytes}).value());
}

class PinnedArenas : public ::testing::Test {
 protected:
  /// Takes steps until there are none; returns how many.
  size_t run() {
    size_t steps = 0;
    while (auto step = arenas.next(next_region)) {
      ++next_region;
      ++steps;
      EXPECT_FALSE(arenas.next(next_region)) << "one at a time";
      arenas.done({});
    }
    return steps;
  }
  bool finds(const std::shared_ptr<const arena>& in, uint64_t offset) const {
    return arenas.find(in->data() + offset).has_value();
  }

  pinned_arenas arenas{piece};
  uint64_t next_region = 100;
  const error refused{errc::internal, "refused"};
};

TEST_F(PinnedArenas, ASegmentIsMappedAndThenPinnedPieceByPiece) {
  auto segment = segment_of(2 * piece + 4096);
  arenas.add(segment);
  EXPECT_FALSE(arenas.next(1)) << "there is no process";
  arenas.serve();
  auto first = arenas.next(1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->what, kind::map);
  EXPECT_EQ(first->region, 1U);
  EXPECT_EQ(first->bytes, segment->size());
  EXPECT_EQ(first->segment, segment);
  arenas.done({});
  EXPECT_FALSE(finds(segment, 0)) << "mapped is not pinned";
  for (uint64_t i = 0; i < 3; ++i) {
    auto next = arenas.next(2 + i);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->what, kind::pin);
    EXPECT_EQ(next->mapped, 1U);
    EXPECT_EQ(next->offset, i * piece);
    EXPECT_EQ(next->bytes, i == 2 ? 4096 : piece);
    EXPECT_FALSE(finds(segment, i * piece));
    arenas.done({});
    EXPECT_TRUE(finds(segment, i * piece));
  }
  EXPECT_FALSE(arenas.next(9));
  EXPECT_EQ(arenas.pinned_bytes(), segment->size());
  auto place = arenas.find(segment->data() + piece + 7);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->region, 3U);
  EXPECT_EQ(place->offset, 7U);
  EXPECT_EQ(place->bytes, piece - 7);
  EXPECT_EQ(arenas.find(segment->data() + 2 * piece + 4095)->bytes, 1U);
  EXPECT_FALSE(finds(segment, segment->size()));
  EXPECT_FALSE(arenas.find(segment->data() - 1));
}

TEST_F(PinnedArenas, AfterARefusalWhatIsPinnedStaysAndNoMoreIs) {
  auto first = segment_of(2 * piece), second = segment_of(piece);
  arenas.add(first);
  arenas.add(second);
  arenas.serve();
  for (int i = 0; i < 2; ++i) {
    arenas.next(next_region++);
    arenas.done({});
  }
  ASSERT_TRUE(arenas.next(next_region));
  arenas.done(refused);
  EXPECT_EQ(run(), 0U);
  EXPECT_EQ(arenas.pinned_bytes(), piece);
  EXPECT_EQ(finds(first, 0) + finds(second, 0), 1);
  arenas.ended();
  arenas.serve(); // the next process tries again
  EXPECT_EQ(run(), 5U);
  EXPECT_EQ(arenas.pinned_bytes(), 3 * piece);
}

TEST_F(PinnedArenas, ARemovedSegmentIsForgottenWhenNobodyUsesIt) {
  auto stays = segment_of(piece), leaves = segment_of(2 * piece);
  arenas.add(stays);
  arenas.add(leaves);
  arenas.serve();
  run();
  auto number = arenas.use(leaves->data(), {});
  int removed = 0;
  arenas.remove(leaves->data(), [&] { ++removed; });
  EXPECT_FALSE(finds(leaves, 0)) << "no copy begins there";
  EXPECT_EQ(run(), 0U) << "a copy reads it";
  EXPECT_EQ(removed, 0);
  arenas.end_use(number);
  EXPECT_EQ(removed, 0);
  for (int left = 3; left != 0; --left) { // two pieces, and the mapping last
    auto next = arenas.next(next_region);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->what, kind::forget);
    EXPECT_EQ(removed, 0);
    arenas.done({});
  }
  EXPECT_EQ(removed, 1);
  EXPECT_TRUE(finds(stays, 0));
  EXPECT_EQ(arenas.pinned_bytes(), piece);
}

TEST_F(PinnedArenas, ASegmentMayBeRemovedWhileItIsPinned) {
  auto segment = segment_of(2 * piece);
  arenas.add(segment);
  arenas.serve();
  arenas.next(1);
  arenas.done({});
  ASSERT_TRUE(arenas.next(2));
  int removed = 0;
  arenas.remove(segment->data(), [&] { ++removed; });
  EXPECT_EQ(removed, 0) << "the process is at it";
  arenas.done({});
  EXPECT_EQ(run(), 2U);
  EXPECT_EQ(removed, 1);
  EXPECT_TRUE(arenas.empty());
}

TEST_F(PinnedArenas, WithoutAProcessASegmentIsRemovedAtOnce) {
  auto segment = segment_of(piece), unknown = segment_of(piece);
  arenas.add(segment);
  int removed = 0;
  arenas.remove(segment->data(), [&] { ++removed; });
  arenas.remove(unknown->data(), [&] { ++removed; });
  EXPECT_EQ(removed, 2);
  arenas.serve();
  EXPECT_EQ(run(), 0U);
}

TEST_F(PinnedArenas, WhatALostProcessReadsIsHeldUntilItHasEnded) {
  auto segment = segment_of(piece);
  arenas.add(segment);
  arenas.serve();
  run();
  auto object = std::make_shared<int>(0), other = std::make_shared<int>(0);
  arenas.end_use(arenas.use(segment->data(), {other}));
  EXPECT_EQ(other.use_count(), 1) << "read to the end";
  auto number = arenas.use(segment->data(), {object});
  int removed = 0;
  arenas.lose();
  EXPECT_FALSE(finds(segment, 0));
  arenas.end_use(number); // its copy was answered
  EXPECT_EQ(object.use_count(), 2);
  arenas.remove(segment->data(), [&] { ++removed; });
  EXPECT_EQ(removed, 0);
  EXPECT_EQ(run(), 0U);
  arenas.done({}); // nobody waits for that step
  arenas.ended();
  EXPECT_EQ(object.use_count(), 1);
  EXPECT_EQ(removed, 1);
}

TEST_F(PinnedArenas, AUseMayOutliveTheProcess) {
  auto segment = segment_of(piece);
  arenas.add(segment);
  arenas.serve();
  run();
  auto number = arenas.use(segment->data(), {});
  int removed = 0;
  arenas.ended();
  arenas.remove(segment->data(), [&] { ++removed; });
  EXPECT_EQ(removed, 0);
  arenas.end_use(number);
  EXPECT_EQ(removed, 1);
}

} // namespace
} // namespace terrace::gpu
