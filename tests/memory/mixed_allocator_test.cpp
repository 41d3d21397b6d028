#include "memory/allocator.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace mixed_allocator_test {

constexpr uint64_t page = 4096;

/// 100 pages, of which the first 10 are for objects of at most 2 pages.
std::unique_ptr<allocator> make() {
  return make_allocator("mixed", {.capacity_bytes = 100 * page,
                                  .boundary_bytes = 0,
                                  .small_max_bytes = 2 * page,
                                  .small_percent = 10})
      .value();
}

extent one(allocator& a, uint64_t bytes) { return a.allocate({&bytes, 1}).value().front(); }

TEST(Mixed, KeepsSmallObjectsInAnAreaOfTheirOwn) {
  auto arena = make();
  EXPECT_EQ(one(*arena, page), (extent{0, page}));
  EXPECT_EQ(one(*arena, 3 * page), (extent{10 * page, 3 * page}));
  EXPECT_EQ(one(*arena, 2 * page), (extent{page, 2 * page}));
  EXPECT_EQ(one(*arena, 2 * page + 1), (extent{13 * page, 3 * page}));
}

TEST(Mixed, LetsSmallObjectsOverflowAndLargeOnesNever) {
  auto arena = make();
  std::vector<uint64_t> small(12, page), large(30, 3 * page);
  auto spread = arena->allocate(small).value();
  EXPECT_GE(spread[11].offset, 10 * page);
  arena->free(spread);
  ASSERT_TRUE(arena->allocate(large)) << "the other 90 pages";
  uint64_t more = 3 * page, little = page;
  EXPECT_EQ(arena->allocate({&more, 1}).error().code, errc::no_space);
  EXPECT_EQ(arena->usage().largest_free_run, 2 * page) << "though 10 pages lie side by side";
  EXPECT_TRUE(arena->allocate({&little, 1}));
}

TEST(Mixed, PlacesABatchOverBothAreasOrNotAtAll) {
  auto arena = make();
  std::vector<uint64_t> batch{page, 50 * page, page, 30 * page};
  auto taken = arena->allocate(batch).value();
  EXPECT_EQ(taken[0].offset, 0u);
  EXPECT_EQ(taken[1].offset, 10 * page);
  EXPECT_EQ(taken[2].offset, page);
  EXPECT_EQ(taken[3].offset, 60 * page);
  auto before = arena->usage();
  EXPECT_EQ(arena->allocate(std::vector<uint64_t>{page, 11 * page}).error().code, errc::no_space);
  EXPECT_EQ(arena->usage().used_bytes, before.used_bytes);
  EXPECT_EQ(arena->usage().free_runs, before.free_runs);
}

TEST(Mixed, UsesTheRestOfBothAreasForABatchOfSmallObjects) {
  auto arena = make();
  std::vector<uint64_t> first(5, page);
  ASSERT_TRUE(arena->allocate(first));
  ASSERT_TRUE(arena->allocate(std::vector<uint64_t>{87 * page}));
  std::vector<uint64_t> small(8, page); // 5 pages are left in one area and 3 in the other
  auto taken = arena->allocate(small);
  ASSERT_FALSE(taken) << "halves are tried, no search is made";
  small.resize(6);
  EXPECT_TRUE(arena->allocate(small));
}

TEST(Mixed, ChoosesVictimsInTheAreaWhereFewerHaveToLeave) {
  auto arena = make();
  std::vector<uint64_t> all(10, page), large(30, 3 * page);
  auto small = arena->allocate(all).value();
  auto big = arena->allocate(large).value();
  uint64_t page_more = page;
  EXPECT_EQ(arena->choose({&page_more, 1}, std::vector<extent>{big[4], small[2]}), (std::vector<size_t>{0}));
  EXPECT_EQ(arena->choose({&page_more, 1}, std::vector<extent>{small[2], big[4]}), (std::vector<size_t>{0}));
  uint64_t much = 3 * page;
  EXPECT_EQ(arena->choose({&much, 1}, std::vector<extent>{small[2], small[3], small[4]}), std::nullopt);
  std::vector<uint64_t> both{page, 3 * page};
  EXPECT_EQ(arena->choose(both, std::vector<extent>{small[9], small[2], big[4]}),
            (std::vector<size_t>{0, 2}));
}

TEST(Mixed, AdoptsNoLargeObjectAmongTheSmall) {
  auto arena = make();
  EXPECT_FALSE(arena->adopt({{{0, 3 * page}}}, {{3 * page}}));
  EXPECT_FALSE(arena->adopt({{{0, page}, {0, page}}}, {{page, page}}));
  EXPECT_FALSE(arena->adopt({{{0, page}, {10 * page, page}, {10 * page, page}}}, {{page, page, page}}));
  EXPECT_EQ(arena->usage().used_bytes, 0u);
  EXPECT_TRUE(arena->adopt({{{0, page}, {10 * page, page}}}, {{page, page}}));
  EXPECT_EQ(arena->usage().used_bytes, 2 * page);
}

TEST(Mixed, RefusesSharesThatLeaveAnAreaEmpty) {
  for (uint32_t percent : {0u, 100u}) {
    auto made = make_allocator("mixed", {.capacity_bytes = 100 * page, .small_percent = percent});
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().text.find("1 to 99"), std::string::npos) << made.error().text;
  }
  EXPECT_FALSE(make_allocator("mixed", {.capacity_bytes = page}));
}

} // namespace mixed_allocator_test
} // namespace terrace
