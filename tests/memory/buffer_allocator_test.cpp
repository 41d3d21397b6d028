#include "memory/allocator.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

std::unique_ptr<allocator> make(uint64_t bytes) {
  return make_allocator("buffer", {.capacity_bytes = bytes, .alignment_bytes = 64, .boundary_bytes = 0})
      .value();
}

extent one(allocator& a, uint64_t bytes) { return a.allocate({&bytes, 1}).value().front(); }

TEST(Buffer, PutsAValueIntoTheSmallestRunThatHoldsIt) {
  auto heap = make(6400);
  extent wide = one(*heap, 640), wall = one(*heap, 64), narrow = one(*heap, 128), end = one(*heap, 64);
  heap->free({{wide, narrow}});
  EXPECT_EQ(one(*heap, 100), narrow) << "first fit would have cut the wide hole";
  EXPECT_EQ(one(*heap, 640), wide);
  EXPECT_EQ(wall.offset, 640u);
  EXPECT_EQ(end.offset, 832u);
}

TEST(Buffer, TakesTheLowestOfRunsThatFitEquallyWell) {
  auto heap = make(6400);
  std::vector<uint64_t> sizes(10, 64);
  auto taken = heap->allocate(sizes).value();
  heap->free({{taken[7], taken[3], taken[5]}});
  EXPECT_EQ(one(*heap, 1), taken[3]);
  EXPECT_EQ(one(*heap, 1), taken[5]);
  EXPECT_EQ(one(*heap, 1), taken[7]);
}

TEST(Buffer, HoldsNoMoreThanItsCap) {
  auto heap = make(640);
  std::vector<uint64_t> sizes(10, 33);
  ASSERT_TRUE(heap->allocate(sizes));
  EXPECT_EQ(heap->usage().requested_bytes, 330u);
  uint64_t more = 1;
  EXPECT_EQ(heap->allocate({&more, 1}).error().code, errc::no_space);
}

TEST(Buffer, PlacesABatchByFirstFitWhenBestFitWastesWhatItNeeds) {
  auto heap = make(64 * 11);
  extent a = one(*heap, 64 * 4), wall = one(*heap, 64), b = one(*heap, 64 * 6);
  heap->free({{a, b}});
  std::vector<uint64_t> sizes{64 * 3, 64 * 3, 64 * 4};
  auto taken = heap->allocate(sizes); // in this order best fit places 3 where only 4 fits
  ASSERT_TRUE(taken) << taken.error().text;
  EXPECT_EQ((*taken)[2].offset, 0u);
  EXPECT_EQ(wall.offset, 64u * 4);
}

TEST(Buffer, KnowsTheRunsOfAnArenaThatChangedItsSize) {
  auto heap = make_allocator("buffer", {.capacity_bytes = 1024, .alignment_bytes = 64, .boundary_bytes = 512})
                  .value();
  extent low = one(*heap, 64);
  ASSERT_TRUE(heap->retire({0, 512}));
  heap->free({{low}});
  EXPECT_GE(one(*heap, 512).offset, 512u);
  ASSERT_TRUE(heap->grow(512));
  EXPECT_EQ(one(*heap, 512).offset, 1024u);
}

} // namespace
} // namespace terrace
