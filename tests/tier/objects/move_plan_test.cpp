// Tests the fate of the chunks of a prompt that is moved down.
#include "tier/objects/move_plan.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

struct MovePlan : ::testing::Test {
  space_ptr in;
  std::shared_ptr<std::vector<digest>> chunks = std::make_shared<std::vector<digest>>();

  MovePlan() {
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

TEST_F(MovePlan, PartsHaveWholeChunksAndABoundOfBytes) {
  move_plan plan(in, chunks, std::nullopt, 420);
  std::vector<size_t> sizes;
  while (auto part = plan.next())
    sizes.push_back(part->size());
  EXPECT_EQ(sizes, (std::vector<size_t>{6, 6, 3}));
  move_plan small(in, chunks, std::nullopt, 1);
  EXPECT_EQ(small.next()->size(), 3U) << "a chunk at least";
}

TEST_F(MovePlan, EachChunkHasOneFate) {
  move_plan plan(in, chunks, std::nullopt);
  auto part = plan.next();
  ASSERT_EQ(part->size(), 15U);
  EXPECT_EQ(part->keys[3].chunk, (*chunks)[1]);
  EXPECT_TRUE(part->parents[0].empty());
  EXPECT_EQ(part->parents[3], to_entry_key(part->keys[0]));
  //                 moved, present, missing, held, failed
  plan.found(bits("111"
                  "000"
                  "110"
                  "111"
                  "111"),
             bits("001"
                  "111"
                  "000"
                  "000"
                  "000"));
  EXPECT_TRUE(plan.writes());
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
  EXPECT_EQ(plan.written(below, &held).size(), 8U);
  plan.left(bits("000"
                 "000"
                 "000"
                 "010"
                 "100"));
  const auto& sum = plan.sum();
  EXPECT_EQ(sum.requested, 5U);
  EXPECT_EQ(sum.moved.chunks, 1U);
  EXPECT_EQ(sum.moved.bytes, 210U);
  EXPECT_EQ(sum.present.chunks, 1U);
  EXPECT_EQ(sum.missing.chunks, 1U);
  EXPECT_EQ(sum.held.chunks, 1U);
  EXPECT_EQ(sum.failed.chunks, 1U);
  EXPECT_FALSE(plan.next());
}

TEST_F(MovePlan, WhatIsBelowIsNotWritten) {
  move_plan plan(in, chunks, std::nullopt);
  plan.next();
  plan.found(bits(std::string(15, '1')), bits(std::string(15, '1')));
  EXPECT_FALSE(plan.writes());
  EXPECT_TRUE(plan.written(bits(std::string(15, '1')), nullptr).empty());
}
