#include "simulate/chunk_ledger.hpp"

#include "workloads.hpp"

#include <gtest/gtest.h>

namespace terrace::simulate {
namespace {

TEST(ChunkLedger, NamesVictimsByTheirNumbers) {
  workload w = workload_of({{1, 2}, {3}, {4}});
  chunk_ledger ledger(w, {.host_policy = "lru", .object_bytes = 100});
  for (const request& r : w.requests()) {
    ledger.begin(r);
    for (chunk c : w.chain(r))
      ledger.insert(host_tier, c);
    ledger.finish();
  }
  ledger.begin(w.requests()[2]);
  EXPECT_EQ(ledger.victims(host_tier, 3), (std::vector<chunk>{1, 0, 2}));
  EXPECT_EQ(ledger.victims(host_tier, 10), (std::vector<chunk>{1, 0, 2, 3}))
      << "the present request's own is last";
}

TEST(ChunkLedger, AnAncestorThatIsStoredAfterItsChildIsAsYoung) {
  workload w = workload_of({{3}, {1, 2}, {9}});
  chunk_ledger ledger(w, {.host_policy = "lru", .object_bytes = 100});
  for (const request& r : w.requests()) {
    ledger.begin(r);
    for (size_t i = r.chunks; i-- > 0;)
      ledger.insert(host_tier, w.chain(r)[i]);
    ledger.finish();
  }
  ledger.erase(host_tier, 2); // what is left of the younger chain is its root
  EXPECT_EQ(ledger.victims(host_tier, 1), std::vector<chunk>{0});
}

TEST(ChunkLedger, PinnedChunksStay) {
  workload w = workload_of({{1}, {2}, {3}});
  chunk_ledger ledger(w, {.host_policy = "lru", .object_bytes = 100});
  for (const request& r : w.requests()) {
    ledger.begin(r);
    ledger.insert(host_tier, w.chain(r)[0]);
    ledger.finish();
  }
  ledger.pin(host_tier, 0);
  EXPECT_EQ(ledger.victims(host_tier, 1), std::vector<chunk>{1});
  ledger.unpin(host_tier, 0);
  EXPECT_EQ(ledger.victims(host_tier, 1), std::vector<chunk>{0});
}

} // namespace
} // namespace terrace::simulate
