#include "index/segmented_array.hpp"

#include <gtest/gtest.h>

#include <cstdint>

using namespace terrace;

TEST(SegmentedArray, GrowsWithoutMovingWhatItHas) {
  segmented_array<uint64_t> array;
  constexpr size_t in_segment = huge_memory::unit / sizeof(uint64_t);
  array.push_back(7);
  const uint64_t* first = &array[0];
  for (uint64_t n = 1; n <= in_segment; ++n)
    array.push_back(n);
  EXPECT_EQ(&array[0], first);
  EXPECT_EQ(array.size(), in_segment + 1);
  EXPECT_EQ(array[0], 7u);
  EXPECT_EQ(array[in_segment - 1], in_segment - 1);
  EXPECT_EQ(array[in_segment], in_segment);
  const auto& same = array;
  EXPECT_EQ(&same[in_segment], &array[in_segment]);
}

TEST(SegmentedArray, TakesASegmentAtATime) {
  segmented_array<uint64_t> array;
  EXPECT_EQ(array.allocated_bytes(), 0u);
  array.push_back(1);
  size_t one = array.allocated_bytes();
  EXPECT_GE(one, huge_memory::unit);
  array.push_back(2);
  EXPECT_EQ(array.allocated_bytes(), one);
}
