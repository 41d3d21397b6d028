#include "cli/simulate/tier_cache.hpp"

#include "workloads.hpp"

#include <gtest/gtest.h>

namespace terrace::simulate {
namespace {

TEST(ChunkTracker, NamesVictimsByTheirNumbers) {
  workload w = workload_of({{1, 2}, {3}, {4}});
  chunk_tracker tracker(w, {.policies = {"lru"}, .object_bytes = 100});
  for (const request& r : w.requests()) {
    tracker.begin(r);
    for (chunk c : w.chain(r))
      tracker.insert(host_tier, c);
    tracker.finish();
  }
  tracker.begin(w.requests()[2]);
  EXPECT_EQ(tracker.victims(host_tier, 3), (std::vector<chunk>{1, 0, 2}));
  EXPECT_EQ(tracker.victims(host_tier, 10), (std::vector<chunk>{1, 0, 2, 3}))
      << "the present request's own is last";
}

TEST(ChunkTracker, AnAncestorThatIsStoredAfterItsChildIsAsYoung) {
  workload w = workload_of({{3}, {1, 2}, {9}});
  chunk_tracker tracker(w, {.policies = {"lru"}, .object_bytes = 100});
  for (const request& r : w.requests()) {
    tracker.begin(r);
    for (size_t i = r.chunks; i-- > 0;)
      tracker.insert(host_tier, w.chain(r)[i]);
    tracker.finish();
  }
  tracker.erase(host_tier, 2); // only the root of the younger chain is left
  EXPECT_EQ(tracker.victims(host_tier, 1), std::vector<chunk>{0});
}

TEST(ChunkTracker, PinnedChunksStay) {
  workload w = workload_of({{1}, {2}, {3}});
  chunk_tracker tracker(w, {.policies = {"lru"}, .object_bytes = 100});
  for (const request& r : w.requests()) {
    tracker.begin(r);
    tracker.insert(host_tier, w.chain(r)[0]);
    tracker.finish();
  }
  tracker.pin(host_tier, 0);
  EXPECT_EQ(tracker.victims(host_tier, 1), std::vector<chunk>{1});
  tracker.unpin(host_tier, 0);
  EXPECT_EQ(tracker.victims(host_tier, 1), std::vector<chunk>{0});
}

} // namespace
} // namespace terrace::simulate
