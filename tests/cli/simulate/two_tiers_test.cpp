#include "cli/simulate/tier_cache.hpp"

#include "cli/simulate/bounds.hpp"
#include "tests/support/seed.hpp"
#include "workloads.hpp"

#include <gtest/gtest.h>

namespace terrace::simulate {
namespace {

// Positions of the tiers.
constexpr size_t host = 0;
constexpr size_t disk = 1;

tracker_options lru_on_both(bool remember = false) {
  return {.policies = {"lru", "lru"}, .object_bytes = 4096, .remember = remember};
}

cache_shape host_of(uint64_t chunks, uint64_t window = 100) {
  return {.capacity_chunks = chunks, .object_bytes = 4096, .window_chunks = window, .batch_chunks = 100};
}

void serve_all(tier_cache& cache, const workload& w) {
  for (const request& r : w.requests())
    cache.serve(r);
}

TEST(TwoTiers, ServesFromDiskWhatLeftHostMemoryAndKeepsTheCopy) {
  workload w = workload_of({{1}, {2}, {1}});
  tier_cache cache(w, lru_on_both(), host_of(1), {{.capacity_chunks = 10}});
  serve_all(cache, w);
  EXPECT_EQ(cache.counts().hits, 1U);
  EXPECT_EQ(cache.counts().disk_hits, 1U);
  EXPECT_EQ(cache.counts().promoted, 1U);
  EXPECT_TRUE(cache.holds(host, 0) && cache.holds(disk, 0));
  EXPECT_EQ(cache.counts().disk_written, 2U); // the copy stayed, so 1 was written only once
}

TEST(TwoTiers, PrefixesMayAlternateBetweenTheTiers) {
  // 2 and then 1 leave host memory. 1 comes back from disk for the third request, 2 only for the last.
  workload w = workload_of({{1, 2}, {5, 6}, {1}, {1, 2}});
  tier_cache cache(w, lru_on_both(), host_of(2), {{.capacity_chunks = 10}});
  serve_all(cache, w);
  EXPECT_EQ(cache.counts().hits, 3U);
  EXPECT_EQ(cache.counts().disk_hits, 2U);
}

TEST(TwoTiers, ALongChainGoesPastHostMemory) {
  workload w = workload_of({{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}});
  tier_cache cache(w, lru_on_both(), host_of(2, 1), {{.capacity_chunks = 5}});
  serve_all(cache, w);
  EXPECT_EQ(cache.counts().hits, 5U);
  EXPECT_EQ(cache.counts().disk_hits, 3U);
  EXPECT_LE(cache.used(host), 2U);
}

TEST(TwoTiers, SeenTwiceWritesOnTheSecondUse) {
  workload w = workload_of({{1}, {2}, {1}, {1}});
  tier_cache cache(w, lru_on_both(true), host_of(5),
                   {{.capacity_chunks = 5, .admission = admission_rule::seen_twice}});
  cache.serve(w.requests()[0]);
  cache.serve(w.requests()[1]);
  EXPECT_EQ(cache.counts().disk_written, 0U);
  EXPECT_EQ(cache.counts().disk_refused, 2U);
  cache.serve(w.requests()[2]);
  cache.serve(w.requests()[3]);
  EXPECT_EQ(cache.counts().disk_written, 1U);
  EXPECT_TRUE(cache.holds(disk, 0));
  EXPECT_FALSE(cache.holds(disk, 1));
}

TEST(TwoTiers, WritesOnEvictionSpareWhatIsNeverEvicted) {
  workload w = workload_of({{1}, {2}, {3}});
  tier_cache cache(w, lru_on_both(), host_of(2),
                   {{.capacity_chunks = 5, .writes = tier_writes::on_eviction}});
  serve_all(cache, w);
  EXPECT_EQ(cache.counts().disk_written, 1U);
  EXPECT_TRUE(cache.holds(disk, 0));
  EXPECT_EQ(cache.counts().evicted, 1U);
}

TEST(TwoTiers, EvictionFromHostMemoryIsNoUse) {
  // 1 and 2 came to disk when they left host memory; 1 was used before 2, and is evicted first.
  workload w = workload_of({{1}, {2}, {3}, {4}, {5}});
  tier_cache cache(w, lru_on_both(), host_of(2),
                   {{.capacity_chunks = 2, .writes = tier_writes::on_eviction}});
  serve_all(cache, w);
  EXPECT_FALSE(cache.holds(disk, 0));
  EXPECT_TRUE(cache.holds(disk, 1) && cache.holds(disk, 2));
}

TEST(TwoTiers, BeatsTheVictimAsksOnlyWhenTheDiskIsFull) {
  workload w = workload_of({{1}, {2}});
  tier_cache cache(w, lru_on_both(true), host_of(1),
                   {{.capacity_chunks = 2, .admission = admission_rule::beats_victim}});
  serve_all(cache, w);
  EXPECT_EQ(cache.counts().disk_written, 2U);
}

class Admission : public ::testing::TestWithParam<std::tuple<admission_rule, tier_writes>> {};

TEST_P(Admission, StaysWithinTheBoundsAndTheCapacities) {
  auto [rule, writes] = GetParam();
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  workload w = drawn_workload(random, {.requests = 300, .depth_max = 6, .branches = 3});
  belady_bound best(w);
  // With the small capacities a chain may have to give up its end for its beginning.
  for (auto [host_chunks, disk_chunks] : {std::pair{8U, 30U}, std::pair{3U, 4U}, std::pair{4U, 1U}})
    for (std::string_view policy : eviction_policy_names()) {
      SCOPED_TRACE(policy);
      tracker_options options = lru_on_both(true);
      options.policies = {std::string(policy), std::string(policy)};
      tier_cache cache(w, options, host_of(host_chunks, 3),
                       {{.capacity_chunks = disk_chunks, .admission = rule, .writes = writes}});
      for (const request& r : w.requests()) {
        cache.serve(r);
        ASSERT_LE(cache.used(host), host_chunks);
        ASSERT_LE(cache.used(disk), disk_chunks);
      }
      const cache_counts& counts = cache.counts();
      EXPECT_LE(counts.hits, best.hits(host_chunks + disk_chunks)) << policy;
      EXPECT_LE(counts.hits - counts.disk_hits, best.hits(host_chunks)) << policy;
      EXPECT_EQ(counts.stored + counts.promoted - counts.evicted, cache.used(host)) << policy;
      EXPECT_EQ(counts.disk_written - counts.disk_evicted, cache.used(disk)) << policy;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Admission,
    ::testing::Combine(::testing::Values(admission_rule::always, admission_rule::seen_twice,
                                         admission_rule::beats_victim),
                       ::testing::Values(tier_writes::on_use, tier_writes::on_eviction)));

TEST(TwoTiers, ADiskForAllIsAnInfiniteCache) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  workload w = drawn_workload(random, {.requests = 300, .depth_max = 6, .branches = 3});
  for (tier_writes writes : {tier_writes::on_use, tier_writes::on_eviction}) {
    tier_cache cache(w, lru_on_both(), host_of(3, 2), {{.capacity_chunks = 10'000, .writes = writes}});
    serve_all(cache, w);
    EXPECT_EQ(cache.counts().hits, infinite_cache_hits(w));
    EXPECT_EQ(cache.counts().disk_evicted, 0U);
  }
}

} // namespace
} // namespace terrace::simulate
