#include "cli/simulate/tier_cache.hpp"

#include "cli/simulate/bounds.hpp"
#include "tests/support/seed.hpp"
#include "workloads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace terrace::simulate {
namespace {

constexpr uint64_t object = 4096;

cache_shape shape(uint64_t chunks, uint64_t window = 100, uint64_t batch = 100) {
  return {.capacity_chunks = chunks, .object_bytes = object, .window_chunks = window, .batch_chunks = batch};
}

tracker_options by(std::string_view policy) {
  return {.policies = {std::string(policy)}, .object_bytes = object};
}

cache_counts served(const workload& w, const char* policy, const cache_shape& s) {
  tier_cache cache(w, by(policy), s);
  for (const request& r : w.requests())
    cache.serve(r);
  return cache.counts();
}

/// Leaf-only LRU as a list, youngest first, for stores of one window. A request spares its own chain.
class naive_lru {
 public:
  naive_lru(const workload& w, size_t capacity) : w_(w), capacity_(capacity) {}

  uint64_t serve(const request& r) {
    auto chain = w_.chain(r);
    size_t hits = 0;
    while (hits < chain.size() && has(chain[hits]))
      ++hits;
    for (size_t i = hits; i-- > 0;)
      touch(chain[i]);
    if (chain.size() > capacity_)
      return hits;
    while (order_.size() + chain.size() - hits > capacity_)
      evict(chain);
    for (size_t i = chain.size(); i-- > hits;)
      touch(chain[i]);
    std::rotate(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(chain.size() - hits),
                order_.begin() + static_cast<ptrdiff_t>(chain.size())); // the prefix is the youngest
    return hits;
  }

 private:
  bool has(chunk c) const { return std::find(order_.begin(), order_.end(), c) != order_.end(); }
  void touch(chunk c) {
    std::erase(order_, c);
    order_.insert(order_.begin(), c);
  }
  void evict(std::span<const chunk> spared) {
    for (size_t i = order_.size(); i-- > 0;) {
      auto child = [&](chunk c) { return w_.parent(c) == order_[i]; };
      if (std::none_of(order_.begin(), order_.end(), child) &&
          std::find(spared.begin(), spared.end(), order_[i]) == spared.end()) {
        order_.erase(order_.begin() + static_cast<ptrdiff_t>(i));
        return;
      }
    }
  }

  const workload& w_;
  size_t capacity_;
  std::vector<chunk> order_;
};

TEST(OneTier, HitsTheLongestRunFromTheRoot) {
  workload w = workload_of({{1, 2, 3}, {1, 2, 4}, {1, 2, 3, 5}});
  cache_counts counts = served(w, "lru", shape(10));
  EXPECT_EQ(counts.hits, 2U + 3U);
  EXPECT_EQ(counts.accesses, 10U);
  EXPECT_EQ(counts.stored, 5U);
  EXPECT_EQ(counts.evicted, 0U);
}

TEST(OneTier, EvictsTheLeastRecentLeaf) {
  // Room for 3 chunks: 9 evicts the suffix of the older chain, not its root.
  workload w = workload_of({{1, 2}, {3}, {9}, {1}, {3}, {1, 2}});
  cache_counts counts = served(w, "lru", shape(3));
  EXPECT_EQ(counts.hits, 1U /* 1 */ + 1U /* 3 */ + 1U /* 1 of 1, 2 */);
}

TEST(OneTier, FifoIgnoresHits) {
  workload w = workload_of({{1}, {2}, {1}, {3}, {1}});
  EXPECT_EQ(served(w, "fifo", shape(2)).hits, 1U);
  EXPECT_EQ(served(w, "lru", shape(2)).hits, 2U);
}

TEST(OneTier, AWindowThatCannotFitIsRefusedWhole) {
  workload w = workload_of({{1, 2, 3}, {1, 2}, {1, 2}});
  cache_counts counts = served(w, "lru", shape(2));
  EXPECT_EQ(counts.no_room, 3U);
  EXPECT_EQ(counts.hits, 2U);
}

TEST(OneTier, AChainLongerThanTheTierKeepsItsBeginning) {
  workload w = workload_of({{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}});
  EXPECT_EQ(served(w, "lru", shape(5, 2)).hits, 5U);
  tier_cache cache(w, by("lru"), shape(4, 1));
  cache.serve(w.requests()[0]);
  EXPECT_TRUE(cache.holds(0, 0) && cache.holds(0, 1) && cache.holds(0, 2) && cache.holds(0, 4));
  cache.serve(w.requests()[1]);
  EXPECT_EQ(cache.counts().hits, 3U);
}

TEST(OneTier, AStoreLeavesNoGapBeforeWhatItKeeps) {
  // Room for 6 chunks, in windows of 5. The first request keeps 0 to 3, and 5 and 6 after a gap. The second
  // stores 4 and 7 in the places of 5 and 6, and then 5 in the place of 7.
  workload w = workload_of({{0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6, 7}});
  for (std::string_view policy : eviction_policy_names()) {
    SCOPED_TRACE(policy);
    tier_cache cache(w, by(policy), shape(6, 5));
    for (const request& r : w.requests())
      cache.serve(r);
    EXPECT_EQ(cache.counts().hits, 4U);
    for (chunk c = 0; c < 6; ++c)
      EXPECT_TRUE(cache.holds(0, c)) << c;
  }
}

TEST(OneTier, ChainsLongerThanTheTierNeverPassItsCapacity) {
  // Each request finds what an earlier one left of its chain: the room for the beginning of a chain is made
  // from its end, even from chunks in the window that is being stored.
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  for (std::string_view policy : eviction_policy_names())
    for (uint64_t capacity : {4U, 16U, 50U}) {
      SCOPED_TRACE(std::string(policy) + " with room for " + std::to_string(capacity));
      workload w = interleaved_chains(random, 2 * capacity);
      for (uint64_t window : {uint64_t{1}, capacity / 2, capacity}) {
        tier_cache cache(w, by(policy), shape(capacity, window, 2 * window + 1));
        for (const request& r : w.requests()) {
          cache.serve(r);
          ASSERT_LE(cache.used(0), capacity);
        }
        const cache_counts& counts = cache.counts();
        EXPECT_LE(counts.hits, belady_bound(w).hits(capacity));
        EXPECT_EQ(counts.stored - counts.evicted, cache.used(0));
      }
    }
}

TEST(OneTier, ARequestSparesItsOwnChain) {
  // 3 takes the place of 9, although fifo would rather evict the leaf of the chain that is being stored.
  workload w = workload_of({{1, 2}, {9}, {1, 2, 3}});
  tier_cache cache(w, by("fifo"), shape(3));
  for (const request& r : w.requests())
    cache.serve(r);
  EXPECT_EQ(cache.counts().hits, 2U);
  EXPECT_TRUE(cache.holds(0, 0) && cache.holds(0, 1));
  EXPECT_FALSE(cache.holds(0, 2));
}

TEST(OneTier, IsTheNaiveLruOnDrawnTraces) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    workload w = drawn_workload(random, {.requests = 60, .depth_max = 5, .branches = 3});
    size_t capacity = 5 + random() % 20;
    naive_lru naive(w, capacity);
    tier_cache cache(w, by("lru"), shape(capacity));
    for (const request& r : w.requests()) {
      uint64_t before = cache.counts().hits;
      cache.serve(r);
      ASSERT_EQ(cache.counts().hits - before, naive.serve(r))
          << "round " << round << ", capacity " << capacity;
    }
  }
}

TEST(OneTier, KmgStaysWithinTwoPercentOfLruInCachesOfFewChains) {
  std::mt19937_64 random(
      1); // the traces are fixed: this compares policies, and promises nothing for each request
  std::vector<workload> traces;
  for (int i = 0; i < 4; ++i)
    traces.push_back(short_sessions(random, 1'000));
  for (uint64_t depth : {30, 100})
    traces.push_back(interleaved_chains(random, depth));
  for (uint64_t capacity : {8U, 16U, 24U, 40U, 80U, 160U})
    for (const workload& w : traces) {
      auto kmg = served(w, "kmg", shape(capacity, std::max<uint64_t>(1, capacity / 8)));
      auto lru = served(w, "lru", shape(capacity, std::max<uint64_t>(1, capacity / 8)));
      EXPECT_GE(kmg.hits + lru.accesses / 50, lru.hits)
          << "of " << lru.accesses << ", capacity " << capacity << ", trace " << &w - traces.data();
    }
}

class EveryPolicy : public ::testing::TestWithParam<std::string_view> {};

TEST_P(EveryPolicy, StaysWithinTheBoundsAndTheCapacity) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  workload w = drawn_workload(random, {.requests = 300, .depth_max = 6, .branches = 3});
  belady_bound best(w);
  for (uint64_t capacity : {6U, 20U, 100U, 100'000U}) {
    tier_cache cache(w, by(GetParam()), shape(capacity, 3));
    for (const request& r : w.requests()) {
      cache.serve(r);
      ASSERT_LE(cache.used(0), capacity);
    }
    const cache_counts& counts = cache.counts();
    EXPECT_LE(counts.hits, best.hits(capacity)) << capacity;
    EXPECT_EQ(counts.stored - counts.evicted, cache.used(0));
    if (capacity >= w.distinct_chunks()) {
      EXPECT_EQ(counts.hits, infinite_cache_hits(w));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy,
                         ::testing::ValuesIn(eviction_policy_names().begin(), eviction_policy_names().end()),
                         [](const auto& named) { return std::string(named.param); });

TEST(CacheShape, CountsWholeObjectsOfEachSegment) {
  object_sizes objects{
      .payload_bytes = 90, .physical_bytes = 100, .region_bytes = 1000, .segment_bytes = 250};
  EXPECT_EQ(chunks_in(250, objects), 2U);
  EXPECT_EQ(chunks_in(500, objects), 4U);
  EXPECT_EQ(chunks_in(600, objects), 5U);
  for (uint64_t chunks : {1U, 2U, 3U, 7U})
    EXPECT_EQ(chunks_in(arena_for(chunks, objects), objects), chunks);
}

TEST(CacheShape, WindowsAreAnEighthOfTheArenaAndAtMost64MiB) {
  object_sizes objects{.payload_bytes = 1 << 20, .physical_bytes = (1 << 20) + 4096};
  EXPECT_EQ(shape_of(1ULL << 30, objects).window_chunks, 63U);
  EXPECT_EQ(shape_of(80ULL << 20, objects).window_chunks, 9U);
  EXPECT_EQ(shape_of(2ULL << 20, objects).window_chunks, 1U);
  EXPECT_EQ(shape_of(1ULL << 30, objects).batch_chunks, 32U);
}

} // namespace
} // namespace terrace::simulate
