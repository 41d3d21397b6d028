#include "index/transfer_scope.hpp"

#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using terrace::test::mixed_space;

TEST(CheckedRange, ACountOfZeroMeansAllThatFollow) {
  auto range = checked_range(10, 4, 0);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 4u);
  EXPECT_EQ(range->count, 6u);
}

TEST(CheckedRange, TakesARangeWithinTheChunks) {
  auto range = checked_range(10, 4, 6);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->count, 6u);
}

TEST(CheckedRange, RefusesWhatLeavesTheChunksWithoutOverflow) {
  for (auto [first, count] :
       {std::pair<uint32_t, uint32_t>{4, 7}, {11, 0}, {5, UINT32_MAX}, {UINT32_MAX, 2}}) {
    auto range = checked_range(10, first, count);
    ASSERT_FALSE(range) << first << " " << count;
    EXPECT_EQ(range.error().code, errc::bad_request);
    EXPECT_NE(range.error().text.find("10"), std::string::npos);
  }
}

TEST(CheckedRange, NothingOfNothingIsAllowed) {
  auto range = checked_range(0, 0, 0);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->count, 0u);
}

TEST(CheckedPools, AreAllUnlessSomeAreNamed) {
  EXPECT_EQ(checked_pools(mixed_space(), {}, 1), (pool_list{0, 1, 2}));
  auto named = [](std::vector<uint8_t> pools, size_t chunks = 1) {
    return checked_pools(mixed_space(), pools, chunks);
  };
  EXPECT_EQ(named({0, 2}), (pool_list{0, 2}));
  auto unknown = named({1, 3});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text, "pool number 3 was asked for, the space has 3 pools");
  EXPECT_TRUE(named({0, 2}, transfer_objects_max / 2));
  auto many = named({0, 2}, transfer_objects_max / 2 + 1);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, errc::bad_request);
}

TEST(TransferScope, NumbersItsObjectsByChunkThenPool) {
  transfer_scope scope{{4, 3}, {0, 1, 2}};
  EXPECT_EQ(scope.objects(), 9u);
  EXPECT_EQ(scope.object(0, mixed_space(), 1), (prefix_object{4, 0, 1}));
  EXPECT_EQ(scope.object(5, mixed_space(), 1), (prefix_object{5, 2, 1}));
  EXPECT_EQ(scope.object(7, mixed_space(), 1), (prefix_object{6, 1, 0})) << "replicated: under rank 0";
  EXPECT_EQ((transfer_scope{{4, 3}, {2}}.object(2, mixed_space(), 1)), (prefix_object{6, 2, 1}));
}

TEST(PartOf, ContinuesTheChunkBeforeIt) {
  auto chunk = [](uint8_t number) {
    digest made;
    made.bytes.fill(number);
    return made;
  };
  chunk_prefix whole;
  whole.chunks = {chunk(1), chunk(2), chunk(3)};
  whole.parent = chunk(9);
  auto part = part_of(whole, {1, 2});
  EXPECT_EQ(part.chunks, (std::vector<digest>{chunk(2), chunk(3)}));
  EXPECT_EQ(part.parent, chunk(1));
  EXPECT_EQ(part_of(whole, {0, 1}).parent, chunk(9));
  EXPECT_TRUE(part_of(whole, {1, 0}).chunks.empty());
}
