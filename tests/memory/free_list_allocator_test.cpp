#include "memory/allocator.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace::test {
namespace {

constexpr uint64_t page = 4096;

std::unique_ptr<allocator> arena_of(uint64_t pages, uint64_t boundary_pages = 0) {
  return make_allocator("free_list",
                        {.capacity_bytes = pages * page, .boundary_bytes = boundary_pages * page})
      .value();
}

std::vector<extent> take(allocator& a, std::vector<uint64_t> pages) {
  for (auto& size : pages)
    size *= page;
  return a.allocate(pages).value();
}

std::vector<uint64_t> pages_of(const std::vector<extent>& extents) {
  std::vector<uint64_t> pages;
  for (auto& e : extents)
    pages.push_back(e.offset / page);
  return pages;
}

TEST(FreeList, CutsABatchFromOneRun) {
  auto a = arena_of(64);
  auto hole = take(*a, {2});
  take(*a, {1});
  a->free(hole);
  EXPECT_EQ(pages_of(take(*a, {1, 1, 1, 1})), (std::vector<uint64_t>{3, 4, 5, 6})); // not in the hole at 0
  EXPECT_EQ(pages_of(take(*a, {1})), (std::vector<uint64_t>{0}));
}

TEST(FreeList, SpreadsABatchOverSeveralRunsBeforeItFails) {
  auto a = arena_of(8);
  auto all = take(*a, {2, 1, 2, 1, 2});
  a->free({{all[0], all[2], all[4]}});
  EXPECT_EQ(pages_of(take(*a, {2, 2, 2})), (std::vector<uint64_t>{0, 3, 6}));
}

TEST(FreeList, PlacesTheLargestFirstWhenTheBatchsOrderFails) {
  auto a = arena_of(7);
  auto all = take(*a, {3, 1, 2, 1});
  a->free({{all[0], all[2]}});
  EXPECT_EQ(pages_of(take(*a, {2, 3})), (std::vector<uint64_t>{4, 0})); // 2 first would break the run of 3
}

TEST(FreeList, CoalescesNeighboursOnFree) {
  auto a = arena_of(4);
  auto all = take(*a, {1, 1, 1, 1});
  for (int i : {1, 3, 0, 2})
    a->free({&all[static_cast<size_t>(i)], 1});
  EXPECT_EQ(a->usage().free_runs, 1u);
  EXPECT_EQ(a->usage().largest_free_run, 4 * page);
}

TEST(FreeList, FreesPartsOfABatchSingly) {
  auto a = arena_of(4);
  auto all = take(*a, {1, 1, 1, 1});
  a->free({&all[2], 1});
  EXPECT_EQ(pages_of(take(*a, {1})), (std::vector<uint64_t>{2}));
}

TEST(FreeList, CrossesNoBoundary) {
  auto a = arena_of(8, 4);
  take(*a, {3});
  EXPECT_EQ(a->usage().largest_free_run, 4 * page);
  EXPECT_EQ(pages_of(take(*a, {2})), (std::vector<uint64_t>{4}));
  EXPECT_EQ(pages_of(take(*a, {1, 2})), (std::vector<uint64_t>{3, 6}));
}

TEST(FreeList, SaysWhatIsFreeWhenItIsFull) {
  auto a = arena_of(2);
  take(*a, {1});
  std::vector<uint64_t> sizes{page, page};
  auto refused = a->allocate(sizes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_space);
  EXPECT_NE(refused.error().text.find("4096 of 8192 bytes are free"), std::string::npos)
      << refused.error().text;
}

/// First fit on an array of pages.
struct naive_first_fit {
  std::vector<bool> used;
  uint64_t boundary;

  bool fits(size_t at, size_t n) const {
    if (at + n > used.size() || (boundary != 0 && at / boundary != (at + n - 1) / boundary))
      return false;
    return std::none_of(used.begin() + at, used.begin() + at + n, [](bool b) { return b; });
  }
  std::vector<uint64_t> place(const std::vector<uint64_t>& sizes, const std::vector<size_t>& order) {
    auto before = used;
    std::vector<uint64_t> at(sizes.size());
    for (size_t i : order) {
      while (at[i] < used.size() && !fits(at[i], sizes[i]))
        ++at[i];
      if (at[i] == used.size()) {
        used = before;
        return {};
      }
      std::fill_n(used.begin() + at[i], sizes[i], true);
    }
    return at;
  }
  std::vector<uint64_t> allocate(const std::vector<uint64_t>& sizes) {
    uint64_t total = 0;
    std::vector<uint64_t> at;
    std::vector<size_t> order;
    for (uint64_t size : sizes)
      at.push_back(total), order.push_back(order.size()), total += size;
    if (auto run = place({total}, {0}); !run.empty()) {
      for (auto& offset : at)
        offset += run[0];
      return at;
    }
    if (auto found = place(sizes, order); !found.empty())
      return found;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
    return place(sizes, order);
  }
};

TEST(FreeList, PlacesExactlyAsTheNaiveFirstFit) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  for (uint64_t boundary : {0, 10}) {
    auto a = arena_of(96, boundary);
    naive_first_fit model{std::vector<bool>(96), boundary};
    std::vector<extent> held;
    for (int step = 0; step < 4'000; ++step) {
      if (random() % 2 == 0) {
        std::vector<uint64_t> sizes(1 + random() % 4), bytes;
        for (auto& size : sizes)
          bytes.push_back((size = 1 + random() % 6) * page);
        auto taken = a->allocate(bytes);
        ASSERT_EQ(taken ? pages_of(*taken) : std::vector<uint64_t>{}, model.allocate(sizes))
            << "step " << step;
        if (taken)
          held.insert(held.end(), taken->begin(), taken->end());
      } else if (!held.empty()) {
        std::shuffle(held.begin(), held.end(), random);
        size_t n = 1 + random() % std::min<size_t>(held.size(), 5);
        std::span back(held.end() - static_cast<ptrdiff_t>(n), held.end());
        a->free(back);
        for (auto& e : back)
          std::fill_n(model.used.begin() + e.offset / page, e.size / page, false);
        held.resize(held.size() - n);
      }
    }
  }
}

} // namespace
} // namespace terrace::test
