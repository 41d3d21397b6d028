#include "cli/simulate/bounds.hpp"

#include "tests/support/seed.hpp"
#include "workloads.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

namespace terrace::simulate {
namespace {

/// Tries every set of at most `capacity` chunks that may stay after each request.
uint64_t best_of_all(const workload& w, uint64_t capacity) {
  std::map<uint32_t, uint64_t> best{{0, 0}}; // the most hits so far, by the set of held chunks
  for (const request& r : w.requests()) {
    uint32_t asked = 0;
    for (chunk c : w.chain(r))
      asked |= 1U << c;
    std::map<uint32_t, uint64_t> next;
    for (auto [held, hits] : best) {
      for (chunk c : w.chain(r)) { // the longest run from the root
        if ((held >> c & 1) == 0)
          break;
        ++hits;
      }
      uint32_t all = held | asked;
      for (uint32_t kept = all;; kept = (kept - 1) & all) {
        if (static_cast<uint64_t>(std::popcount(kept)) <= capacity)
          next[kept] = std::max(next[kept], hits);
        if (kept == 0)
          break;
      }
    }
    best = std::move(next);
  }
  uint64_t most = 0;
  for (auto [held, hits] : best)
    most = std::max(most, hits);
  return most;
}

TEST(BeladyBound, KeepsWhatIsNeededNext) {
  // Room for one chunk: 1 saves two misses, 2 saves one.
  workload w = workload_of({{1}, {2}, {1}, {1}, {2}});
  EXPECT_EQ(belady_bound(w).hits(1), 2U);
  EXPECT_EQ(belady_bound(w).hits(2), 3U);
}

TEST(BeladyBound, KeepsPrefixesOfWhatIsNeededTogether) {
  workload w = workload_of({{1, 2, 3, 4}, {1, 2, 3, 4}});
  for (uint64_t capacity = 0; capacity <= 5; ++capacity)
    EXPECT_EQ(belady_bound(w).hits(capacity), std::min<uint64_t>(capacity, 4)) << capacity;
}

TEST(BeladyBound, MayRefuseAChunk) {
  workload w = workload_of({{1}, {2}, {3}, {1}});
  EXPECT_EQ(belady_bound(w).hits(1), 1U);
}

TEST(BeladyBound, IsTheBestOfAllChoicesOnTinyTraces) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    workload w = drawn_workload(random, {.requests = 9, .depth_max = 3, .branches = 2});
    ASSERT_LE(w.distinct_chunks(), 14U);
    belady_bound bound(w);
    for (uint64_t capacity = 0; capacity <= 5; ++capacity)
      ASSERT_EQ(bound.hits(capacity), best_of_all(w, capacity))
          << "round " << round << ", room for " << capacity;
  }
}

TEST(BeladyBound, NeverLosesByMoreRoomAndEndsAtTheInfiniteCache) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  workload w = drawn_workload(random, {.requests = 400, .depth_max = 8, .branches = 2});
  belady_bound bound(w);
  uint64_t before = 0;
  for (uint64_t capacity = 0; capacity <= w.distinct_chunks(); ++capacity) {
    uint64_t hits = bound.hits(capacity);
    ASSERT_GE(hits, before) << capacity;
    before = hits;
  }
  EXPECT_EQ(before, infinite_cache_hits(w));
}

TEST(InfiniteCache, CountsWhatWasSeenBefore) {
  EXPECT_EQ(infinite_cache_hits(workload_of({{1, 2, 3}, {1, 2, 4}, {1, 2, 4, 5}, {9}})), 5U);
}

TEST(InfiniteCache, IsThatOfASet) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  workload w = drawn_workload(random, {.requests = 300, .depth_max = 6, .branches = 3});
  std::set<chunk> seen;
  uint64_t hits = 0;
  for (chunk c : w.accesses())
    hits += !seen.insert(c).second;
  EXPECT_EQ(infinite_cache_hits(w), hits);
}

} // namespace
} // namespace terrace::simulate
