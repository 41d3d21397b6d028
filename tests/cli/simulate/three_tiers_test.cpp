// A tier_cache works with any number of tiers.
#include "cli/simulate/bounds.hpp"
#include "cli/simulate/tier_cache.hpp"
#include "tests/support/seed.hpp"
#include "workloads.hpp"

#include <gtest/gtest.h>

namespace terrace::simulate {
namespace {

cache_shape first_of(uint64_t chunks) {
  return {.capacity_chunks = chunks, .object_bytes = 4096, .window_chunks = 3, .batch_chunks = 100};
}

TEST(ThreeTiers, WhatLeavesOneGoesToTheNext) {
  workload w = workload_of({{1}, {2}, {3}, {1}});
  lower_tier below{.capacity_chunks = 1, .writes = tier_writes::on_eviction};
  tier_cache cache(w, {.policies = {"lru", "lru", "lru"}, .object_bytes = 4096}, first_of(1), {below, below});
  for (const request& r : w.requests().first(3))
    cache.serve(r);
  EXPECT_TRUE(cache.holds(0, 2) && cache.holds(1, 1) && cache.holds(2, 0));
  cache.serve(w.requests()[3]);
  EXPECT_EQ(cache.counts().hits, 1U);
  EXPECT_EQ(cache.counts().promoted, 1U);
  EXPECT_TRUE(cache.holds(0, 0)) << "it was brought to the first tier";
}

TEST(ThreeTiers, EachStaysWithinItsCapacityAndTheSumWithinTheBound) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  workload w = drawn_workload(random, {.requests = 300, .depth_max = 6, .branches = 3});
  belady_bound best(w);
  for (tier_writes writes : {tier_writes::on_use, tier_writes::on_eviction})
    for (std::string_view policy : eviction_policy_names()) {
      std::string name(policy);
      SCOPED_TRACE(name);
      tier_cache cache(w, {.policies = {name, name, name}, .object_bytes = 4096}, first_of(3),
                       {{.capacity_chunks = 5, .writes = writes}, {.capacity_chunks = 20, .writes = writes}});
      for (const request& r : w.requests()) {
        cache.serve(r);
        ASSERT_LE(cache.used(0), 3U);
        ASSERT_LE(cache.used(1), 5U);
        ASSERT_LE(cache.used(2), 20U);
      }
      const cache_counts& counts = cache.counts();
      EXPECT_LE(counts.hits, best.hits(3 + 5 + 20));
      EXPECT_GT(counts.disk_hits, 0U);
      EXPECT_EQ(counts.disk_written - counts.disk_evicted, cache.used(1) + cache.used(2));
    }
}

} // namespace
} // namespace terrace::simulate
