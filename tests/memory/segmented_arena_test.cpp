#include "memory/segmented_arena.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>

using namespace terrace;

namespace {

std::unique_ptr<segmented_arena> made(uint64_t bytes, uint64_t segment_bytes) {
  auto created = segmented_arena::create({.name = "test", .bytes = bytes, .segment_bytes = segment_bytes});
  EXPECT_TRUE(created) << created.error().text;
  return std::move(*created);
}

} // namespace

TEST(SegmentedArena, IsCutIntoSegmentsOfWhichTheLastMayBeShorter) {
  auto memory = made(40960, 16384);
  ASSERT_EQ(memory->segments(), 3u);
  EXPECT_EQ(memory->size(), 40960u);
  EXPECT_EQ(memory->segment(0)->size(), 16384u);
  EXPECT_EQ(memory->segment(1)->size(), 16384u);
  EXPECT_EQ(memory->segment(2)->size(), 8192u);
}

TEST(SegmentedArena, IsOneSegmentWhenItFits) {
  auto memory = made(8192, 1 << 30);
  EXPECT_EQ(memory->segments(), 1u);
  EXPECT_EQ(memory->segment(0)->size(), 8192u);
}

TEST(SegmentedArena, OffsetsNameASegmentAndAPlaceInIt) {
  auto memory = made(40960, 16384);
  auto where = memory->locate(16384 + 4096);
  EXPECT_EQ(where.segment, 1u);
  EXPECT_EQ(where.offset, 4096u);
  EXPECT_EQ(memory->at(16384 + 4096), memory->segment(1)->data() + 4096);
  EXPECT_EQ(memory->at(16383), memory->segment(0)->data() + 16383);
  EXPECT_EQ(memory->at(32768), memory->segment(2)->data());
}

TEST(SegmentedArena, WhatIsWrittenIsSeenThroughTheSegmentsDescriptor) {
  auto memory = made(32768, 16384);
  std::memcpy(memory->at(16384), "kv", 2);
  auto fd = memory->segment(1)->duplicate();
  ASSERT_TRUE(fd);
  auto mapped = mapping::map(fd->get(), 16384, false);
  ASSERT_TRUE(mapped) << mapped.error().text;
  EXPECT_EQ(std::memcmp(mapped->data(), "kv", 2), 0);
}

TEST(SegmentedArena, PrefaultGoesSegmentAfterSegmentAndSaysWhenAllIsCommitted) {
  auto memory = made(32768, 16384);
  auto first = memory->prefault(16384);
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_FALSE(*first);
  EXPECT_EQ(memory->segment(0)->prefaulted_bytes(), 16384u);
  EXPECT_EQ(memory->segment(1)->prefaulted_bytes(), 0u);
  auto half = memory->prefault(8192);
  ASSERT_TRUE(half);
  EXPECT_FALSE(*half);
  auto last = memory->prefault(8192);
  ASSERT_TRUE(last);
  EXPECT_TRUE(*last);
  auto again = memory->prefault(8192);
  ASSERT_TRUE(again);
  EXPECT_TRUE(*again);
}

TEST(SegmentedArena, PrefaultKeepsWhatWasWritten) {
  auto memory = made(16384, 16384);
  std::memcpy(memory->at(4096), "kv", 2);
  ASSERT_TRUE(memory->prefault(16384));
  EXPECT_EQ(std::memcmp(memory->at(4096), "kv", 2), 0);
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

TEST(SegmentedArena, GrowsByWholeSegmentsBehindAShortOne) {
  auto memory = made(24576, 16384); // the second has 8192
  auto grown = memory->grow(20480);
  ASSERT_TRUE(grown) << grown.error().text;
  EXPECT_EQ(grown->gap_bytes, 8192u);
  EXPECT_EQ(grown->first, 2u);
  EXPECT_EQ(grown->end, 4u);
  EXPECT_EQ(memory->size(), 45056u);
  EXPECT_EQ(memory->range_of(2).offset, 32768u);
  EXPECT_EQ(memory->range_of(3).bytes, 4096u);
  std::memcpy(memory->at(3 * 16384), "kv", 2);
  EXPECT_EQ(memory->segment(3)->data(), memory->at(3 * 16384));
  EXPECT_FALSE(memory->prefault(4096).value());
  while (!memory->prefault(16384).value()) {
  }
  EXPECT_EQ(memory->segment(3)->prefaulted_bytes(), 4096u);
}

TEST(SegmentedArena, AGrowthThatCannotBeCommittedIsTakenBack) {
  auto memory = made(16384, 16384);
  auto grown = memory->grow(32768).value();
  memory->undo(grown);
  EXPECT_EQ(memory->size(), 16384u);
  EXPECT_EQ(memory->segments(), 1u);
  EXPECT_EQ(memory->segment(1), nullptr);
  EXPECT_EQ(memory->grow(4096)->first, 1u);
}

TEST(SegmentedArena, GrowsWhollyOrNotAtAll) {
  auto memory = made(16384, 16384);
  EXPECT_FALSE(memory->grow(16384 + 100));
  EXPECT_FALSE(memory->grow(uint64_t{20000} * 16384));
  EXPECT_EQ(memory->size(), 16384u);
  EXPECT_EQ(memory->segments(), 1u);
}

TEST(SegmentedArena, ShrinksFromTheEndAndByWhatNoClientMapsFirst) {
  auto memory = made(65536, 16384);
  auto mapped = memory->lend(3); // a connection keeps the segment like this while its client maps it
  EXPECT_EQ(memory->choose(16384), (std::vector<uint32_t>{2}));
  EXPECT_EQ(memory->choose(16385), (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(memory->choose(65536), (std::vector<uint32_t>{2, 1, 0, 3}));
  memory->retire(2);
  EXPECT_EQ(memory->choose(16384), (std::vector<uint32_t>{1})) << "a segment goes once";
}

TEST(SegmentedArena, ARetiredSegmentStaysUntilItIsDroppedAndNoClientMapsIt) {
  auto memory = made(32768, 16384);
  auto mapped = memory->lend(1);
  std::memcpy(memory->at(16384), "kv", 2);
  memory->retire(1);
  EXPECT_EQ(memory->size(), 16384u);
  EXPECT_EQ(memory->leaving_bytes(), 16384u);
  EXPECT_EQ(std::memcmp(memory->at(16384), "kv", 2), 0) << "what is leased is read on";
  memory->drop(1);
  EXPECT_EQ(memory->segment(1), nullptr);
  EXPECT_EQ(memory->leaving_bytes(), 16384u);
  EXPECT_EQ(std::memcmp(mapped->data(), "kv", 2), 0);
  mapped = nullptr;
  EXPECT_EQ(memory->leaving_bytes(), 0u);
  EXPECT_EQ(memory->grow(16384)->first, 2u) << "numbers are not used again";
}

TEST(SegmentedArena, SaysWhenHugePagesWereNotToBeHad) {
  constexpr uint64_t gib = 1ULL << 30;
  auto memory =
      segmented_arena::create({.bytes = 1024 * gib, .segment_bytes = gib, .huge_pages = true}).value();
  EXPECT_LT(memory->huge_page_bytes(), 1024 * gib) << "no machine of these tests has set so much aside";
  EXPECT_NE(memory->huge_pages_refusal().find("segments have ordinary pages"), std::string::npos);
  EXPECT_NE(memory->huge_pages_refusal().find("vm.nr_hugepages"), std::string::npos);
  EXPECT_EQ(made(16384, 16384)->huge_pages_refusal(), "");
}
