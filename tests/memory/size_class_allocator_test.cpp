#include "memory/allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace terrace::test {
namespace size_class_allocator_test {

constexpr uint64_t page = 4096;

struct SizeClass : ::testing::Test {
  std::unique_ptr<allocator> arena = of(1024);

  static std::unique_ptr<allocator> of(uint64_t pages) {
    return make_allocator("size_class", {.capacity_bytes = pages * page, .boundary_bytes = 0}).value();
  }
  extent take(uint64_t pages) {
    uint64_t bytes = pages * page;
    return arena->allocate({&bytes, 1}).value()[0];
  }
  std::vector<extent> take(uint64_t pages, int count) {
    std::vector<extent> taken;
    while (count-- > 0)
      taken.push_back(take(pages));
    return taken;
  }
};

TEST_F(SizeClass, DividesASmallArenaAsByFirstFit) {
  EXPECT_EQ(take(3).offset, 0u);
  EXPECT_EQ(take(2).offset, 3 * page);
  EXPECT_EQ(take(3).offset, 5 * page);
}

TEST_F(SizeClass, KeepsObjectsOfOneSizeTogetherOnceThereAreMany) {
  auto small = take(1, 16);
  auto other = take(5);
  auto first = take(1); // opens a slab of four
  auto behind = take(5);
  for (int i = 1; i < 4; ++i)
    EXPECT_EQ(take(1).offset, first.offset + static_cast<uint64_t>(i) * page);
  EXPECT_EQ(behind.offset, first.offset + 4 * page);
  EXPECT_EQ(first.offset, other.offset + other.size);
}

TEST_F(SizeClass, FillsTheLowestSlotThatIsFree) {
  take(1, 16);
  auto slab = take(1, 4);
  arena->free({&slab[2], 1});
  arena->free({&slab[0], 1});
  EXPECT_EQ(take(1), slab[0]);
  EXPECT_EQ(take(1), slab[2]);
}

TEST_F(SizeClass, AnEmptySlabIsOrdinaryFreeSpace) {
  auto loose = take(1, 16);
  auto slab = take(1, 2);
  arena->free(slab);
  EXPECT_EQ(take(1000).offset, 16 * page); // all bytes that the slab had been cut from
}

TEST_F(SizeClass, ARequestThatNothingElseCanServeCutsThroughSlabs) {
  arena = of(32);
  auto loose = take(1, 16);
  auto slabs = take(1, 16);
  arena->free(std::span(slabs).subspan(2, 7)); // slots of several slabs
  EXPECT_EQ(arena->usage().largest_free_run, 7 * page);
  auto across = take(7);
  EXPECT_EQ(across.offset, slabs[2].offset);
  EXPECT_EQ(arena->usage().free_bytes, 0u);
  arena->free(std::span(slabs).first(2));
  arena->free(std::span(slabs).subspan(9));
  arena->free({&across, 1});
  arena->free(loose);
  EXPECT_EQ(arena->usage().largest_free_run, 32 * page);
}

TEST_F(SizeClass, CountsWhatNotEvenTheSmallestObjectCanUse) {
  arena = of(16);
  auto a = take(5), b = take(3), c = take(8);
  EXPECT_EQ(arena->usage().fragmentation(), 0.0);
  arena->free({&a, 1});
  EXPECT_EQ(arena->usage().smallest_bytes, 3 * page);
  EXPECT_EQ(arena->usage().whole_bytes, 3 * page); // two of the five pages are of no use
  EXPECT_DOUBLE_EQ(arena->usage().fragmentation(), 0.4);
  arena->free({&b, 1});
  EXPECT_EQ(arena->usage().whole_bytes, 6 * page);
  arena->free({&c, 1});
  EXPECT_EQ(arena->usage().smallest_bytes, 0u);
}

TEST_F(SizeClass, ChoosesVictimsThatLieBesideAFreeRun) {
  arena = of(12);
  auto all = take(2, 6);
  arena->free({&all[2], 1});
  // The candidates are in the order in which they should leave: the first alone makes no run of four pages,
  // the third does.
  std::vector<extent> candidates{all[5], all[0], all[3], all[1]};
  uint64_t bytes = 4 * page;
  EXPECT_EQ(arena->choose({&bytes, 1}, candidates), (std::vector<size_t>{2}));
  bytes = 2 * page;
  EXPECT_EQ(arena->choose({&bytes, 1}, candidates), std::vector<size_t>{}); // the request fits already
  bytes = 12 * page;
  EXPECT_EQ(arena->choose({&bytes, 1}, candidates), std::nullopt); // all candidates together are not enough
}

TEST_F(SizeClass, ChoosesForAWholeBatch) {
  arena = of(8);
  auto all = take(1, 8);
  std::vector<extent> candidates{all[6], all[0], all[2], all[3], all[4]};
  std::vector<uint64_t> sizes{page, 2 * page};
  EXPECT_EQ(arena->choose(sizes, candidates), (std::vector<size_t>{1, 2, 3}));
}

} // namespace size_class_allocator_test
} // namespace terrace::test
