// Tests the fate of the chunks of a prompt that is moved down.
#include "tier/objects/move_course.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

struct MoveCourse : ::testing::Test {
  space_ptr in;
  std::shared_ptr<std::vector<digest>> chunks = std::make_shared<std::vector<digest>>();

  MoveCourse() {
    space_spec spec;
    spec.pools = {{.name = "kv", .object_bytes = 100},
                  {.name = "state", .object_bytes = 10, .replicated = true}};
    spec.world_size = 2; // three objects a chunk: 210 bytes
    in.reset(new opened_space{space_id{1}, spec, {}});
    for (uint8_t i = 1; i <= 5; ++i) {
      digest chunk;
      chunk.bytes[0] = i;
      chunks->push_back(chunk);
    }
  }
  static object_bitmap bits(const std::string& set) {
    object_bitmap made(set.size());
    for (size_t i = 0; i < set.size(); ++i)
      if (set[i] == '1')
        made.set(i);
    return made;
  }
};

} // namespace

TEST_F(MoveCourse, PartsHaveWholeChunksAndABoundOfBytes) {
  move_course course(in, chunks, std::nullopt, 420);
  std::vector<size_t> sizes;
  while (auto part = course.next())
    sizes.push_back(part->size());
  EXPECT_EQ(sizes, (std::vector<size_t>{6, 6, 3}));
  move_course small(in, chunks, std::nullopt, 1);
  EXPECT_EQ(small.next()->size(), 3U) << "a chunk at least";
}

TEST_F(MoveCourse, EachChunkHasOneFate) {
  move_course course(in, chunks, std::nullopt);
  auto part = course.next();
  ASSERT_EQ(part->size(), 15U);
  EXPECT_EQ(part->keys[3].chunk, (*chunks)[1]);
  EXPECT_TRUE(part->parents[0].empty());
  EXPECT_EQ(part->parents[3], to_entry_key(part->keys[0]));
  //                 moved, present, missing, held, failed
  course.found(bits("111"
                    "000"
                    "110"
                    "111"
                    "111"),
               bits("001"
                    "111"
                    "000"
                    "000"
                    "000"));
  EXPECT_TRUE(course.writes());
  std::vector<object_place> places(15);
  for (size_t i = 0; i < 15; ++i)
    if (i < 3 || i >= 9)
      places[i].id = static_cast<object_id>(i + 1);
  object_hold held(nullptr, places);
  auto below = bits("111"
                    "111"
                    "110"
                    "111"
                    "011");
  EXPECT_EQ(course.written(below, &held).size(), 8U);
  course.left(bits("000"
                   "000"
                   "000"
                   "010"
                   "100"));
  const auto& sum = course.sum();
  EXPECT_EQ(sum.requested, 5U);
  EXPECT_EQ(sum.moved.chunks, 1U);
  EXPECT_EQ(sum.moved.bytes, 210U);
  EXPECT_EQ(sum.present.chunks, 1U);
  EXPECT_EQ(sum.missing.chunks, 1U);
  EXPECT_EQ(sum.held.chunks, 1U);
  EXPECT_EQ(sum.failed.chunks, 1U);
  EXPECT_FALSE(course.next());
}

TEST_F(MoveCourse, WhatIsBelowIsNotWritten) {
  move_course course(in, chunks, std::nullopt);
  course.next();
  course.found(bits(std::string(15, '1')), bits(std::string(15, '1')));
  EXPECT_FALSE(course.writes());
  EXPECT_TRUE(course.written(bits(std::string(15, '1')), nullptr).empty());
}
