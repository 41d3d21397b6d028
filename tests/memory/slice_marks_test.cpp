#include "memory/region_populator.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

namespace terrace {
namespace {

TEST(SliceMarks, AreAddedOnce) {
  slice_marks marks(200);
  for (uint64_t slice : {0, 63, 64, 127, 199}) {
    EXPECT_FALSE(marks.has(slice));
    EXPECT_TRUE(marks.add(slice)) << slice;
    EXPECT_FALSE(marks.add(slice)) << slice;
    EXPECT_TRUE(marks.has(slice));
  }
  for (uint64_t slice : {1, 62, 65, 126, 128, 198})
    EXPECT_FALSE(marks.has(slice)) << slice;
}

TEST(SliceMarks, BeyondTheRegionAreNone) {
  slice_marks marks(64), none(0);
  EXPECT_FALSE(marks.add(64));
  EXPECT_FALSE(marks.add(UINT64_MAX));
  EXPECT_FALSE(marks.has(64));
  EXPECT_FALSE(none.add(0));
  EXPECT_FALSE(none.has(0));
  marks.add(63);
  EXPECT_FALSE(marks.has(64));
}

/// With too many slices, `add` behaves as if every slice had its mark, and `has` as if none had.
TEST(SliceMarks, OfTooManySlicesAreNone) {
  slice_marks most(slice_marks::slices_max), more(slice_marks::slices_max + 1);
  EXPECT_TRUE(most.add(slice_marks::slices_max - 1));
  EXPECT_FALSE(more.add(5));
  EXPECT_FALSE(more.has(5));
}

TEST(SliceMarks, AreGivenToOneOfAllThreads) {
  constexpr size_t threads = 4, slices = 5000;
  slice_marks marks(slices);
  std::vector<uint64_t> got(threads);
  std::vector<std::thread> all;
  for (uint64_t& mine : got)
    all.emplace_back([&] {
      for (uint64_t slice = 0; slice < slices; ++slice)
        mine += marks.add(slice) ? 1 : 0;
    });
  for (std::thread& each : all)
    each.join();
  EXPECT_EQ(std::accumulate(got.begin(), got.end(), uint64_t{0}), slices);
}

} // namespace
} // namespace terrace
