#include "memory/segmented_arena.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>

using namespace terrace;

namespace {

segmented_arena made(uint64_t bytes, uint64_t segment_bytes) {
  auto created = segmented_arena::create({.name = "test", .bytes = bytes, .segment_bytes = segment_bytes});
  EXPECT_TRUE(created) << created.error().text;
  return std::move(*created);
}

} // namespace

TEST(SegmentedArena, IsCutIntoSegmentsOfWhichTheLastMayBeShorter) {
  auto memory = made(40960, 16384);
  ASSERT_EQ(memory.segments().size(), 3u);
  EXPECT_EQ(memory.size(), 40960u);
  EXPECT_EQ(memory.segments()[0].size(), 16384u);
  EXPECT_EQ(memory.segments()[1].size(), 16384u);
  EXPECT_EQ(memory.segments()[2].size(), 8192u);
}

TEST(SegmentedArena, IsOneSegmentWhenItFits) {
  auto memory = made(8192, 1 << 30);
  EXPECT_EQ(memory.segments().size(), 1u);
  EXPECT_EQ(memory.segment_bytes(), 8192u);
}

TEST(SegmentedArena, OffsetsNameASegmentAndAPlaceInIt) {
  auto memory = made(40960, 16384);
  auto where = memory.locate(16384 + 4096);
  EXPECT_EQ(where.segment, 1u);
  EXPECT_EQ(where.offset, 4096u);
  EXPECT_EQ(memory.at(16384 + 4096), memory.segments()[1].data() + 4096);
  EXPECT_EQ(memory.at(16383), memory.segments()[0].data() + 16383);
  EXPECT_EQ(memory.at(32768), memory.segments()[2].data());
}

TEST(SegmentedArena, WhatIsWrittenIsSeenThroughTheSegmentsDescriptor) {
  auto memory = made(32768, 16384);
  std::memcpy(memory.at(16384), "kv", 2);
  auto fd = memory.segments()[1].duplicate();
  ASSERT_TRUE(fd);
  auto mapped = mapping::map(fd->get(), 16384, false);
  ASSERT_TRUE(mapped) << mapped.error().text;
  EXPECT_EQ(std::memcmp(mapped->data(), "kv", 2), 0);
}

TEST(SegmentedArena, PrefaultGoesSegmentAfterSegmentAndSaysWhenAllIsCommitted) {
  auto memory = made(32768, 16384);
  auto first = memory.prefault(16384);
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_FALSE(*first);
  EXPECT_EQ(memory.segments()[0].prefaulted_bytes(), 16384u);
  EXPECT_EQ(memory.segments()[1].prefaulted_bytes(), 0u);
  auto half = memory.prefault(8192);
  ASSERT_TRUE(half);
  EXPECT_FALSE(*half);
  auto last = memory.prefault(8192);
  ASSERT_TRUE(last);
  EXPECT_TRUE(*last);
  auto again = memory.prefault(8192);
  ASSERT_TRUE(again);
  EXPECT_TRUE(*again);
}

TEST(SegmentedArena, PrefaultKeepsWhatWasWritten) {
  auto memory = made(16384, 16384);
  std::memcpy(memory.at(4096), "kv", 2);
  ASSERT_TRUE(memory.prefault(16384));
  EXPECT_EQ(std::memcmp(memory.at(4096), "kv", 2), 0);
}

TEST(SegmentedArena, RefusesSegmentsThatCannotBeRegistered) {
  for (uint64_t segment : {uint64_t{0}, (uint64_t{1} << 30) + 4096}) {
    auto refused = segmented_arena::create({.bytes = 4096, .segment_bytes = segment});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::bad_request);
    EXPECT_NE(refused.error().text.find("segment_bytes"), std::string::npos);
  }
}

TEST(SegmentedArena, RefusesAnArenaOfNothingAndOfBrokenPages) {
  for (uint64_t bytes : {0, 100, 4097}) {
    auto refused = segmented_arena::create({.bytes = bytes});
    ASSERT_FALSE(refused) << bytes;
    EXPECT_EQ(refused.error().code, errc::bad_request);
  }
}
