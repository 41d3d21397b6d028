// Loads under a lease: they give what the lease holds, however little host memory there is.
#include "group_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct LeasedLoads : group_fixture {
  LeasedLoads() {
    start({.host_objects = 32, .disk_objects = 160, .window_objects = 4, .leases = {75, 100, 100}});
  }

  /// What a connection makes of a lease. Without `copies` the objects stay held instead.
  load_result load_leased(const lookup_answer& found, uint64_t first, size_t count, bool copies = true,
                          uint64_t leased_first = 0) {
    leased_chunks leased{found, leased_first};
    auto answer = begin_load(first, count, nullptr, nullptr, &leased, copies);
    settle();
    EXPECT_TRUE(*answer) << "the load was not answered";
    return answer->value_or(load_result{{errc::internal, "no answer"}});
  }
};

} // namespace

TEST_F(LeasedLoads, WhatLeavesWhileALoadWaitsForSpaceIsReadAgain) {
  store(0, 4);
  forget_host(2, 2);
  store(100, 30);
  ASSERT_EQ(present(group->host, 0, 4), 2u);
  auto leased = lookup(chain(0, 4), true, true);
  leased.held.erase(leased.held.begin()); // as a lease that holds all on disk
  auto others = hold(group->host, 100, 30);
  auto loaded = load_leased(leased, 0, 4);
  EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
  EXPECT_EQ(loaded.chunks, 4u);
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(LeasedLoads, LeasesTogetherHoldHalfOfHostMemory) {
  store(0, 14);
  store(100, 14);
  auto first = lookup(chain(0, 14), true);
  auto second = lookup(chain(100, 14), true);
  EXPECT_EQ(first.plan.found_chunks, 14u);
  EXPECT_EQ(second.plan.found_chunks, 14u);
  EXPECT_EQ(report(group->host).held_objects, 16u);
  EXPECT_EQ(report(disk_tier()).held_objects, 14u) << "those of the second, which does not fit";
}

TEST_F(LeasedLoads, AConnectionLeavesAShareForTheNext) {
  store(0, 14);
  group->leases = std::make_shared<lease_ledger>(lease_bounds{75, 75, 100});
  store(100, 14);
  account = group->leases->open();
  auto first = lookup(chain(0, 14), true);
  EXPECT_EQ(report(group->host).held_objects, 12u);
  account = group->leases->open();
  auto second = lookup(chain(100, 14), true);
  EXPECT_EQ(first.plan.found_chunks, 14u) << "the rest is held on disk";
  EXPECT_EQ(second.plan.found_chunks, 14u);
  EXPECT_EQ(report(group->host).held_objects, 15u);
  EXPECT_EQ(group->leases->bytes(), 15 * physical);
}

TEST_F(LeasedLoads, AReaderLeavesAShareForTheNext) {
  store(0, 80);
  group->leases = std::make_shared<lease_ledger>(lease_bounds{75, 75, 100});
  account = group->leases->open();
  auto leased = lookup(chain(0, 80), true);
  auto first = load_leased(leased, 0, 80, false);
  ASSERT_EQ(first.failure.code, errc::ok) << first.failure.text;
  EXPECT_EQ(first.chunks, 18u) << "3/4 of 24";
  auto more = load_leased(leased, 18, 8, false);
  EXPECT_EQ(more.failure.code, errc::no_space);
  account = group->leases->open();
  auto second = load_leased(leased, 40, 8, false);
  EXPECT_EQ(second.failure.code, errc::ok) << second.failure.text;
  EXPECT_EQ(second.chunks, 4u);
}

TEST_F(LeasedLoads, WhatTransfersHoldIsNotCountedAsLeased) {
  store(0, 8);
  auto leased = lookup(chain(0, 8), true, true);
  leased.held.erase(leased.held.begin()); // as a lease that holds all on disk
  forget_host(0, 8);
  store(100, 20);
  auto transfers = hold(group->host, 100, 20);
  account = group->leases->open();
  auto loaded = load_leased(leased, 0, 8, false);
  EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
  EXPECT_EQ(loaded.chunks, 8u) << "twelve are free, and none is leased";
}

TEST_F(LeasedLoads, ManyLeasesBeyondHostMemoryAllGetTheirChains) {
  std::vector<lookup_answer> leases;
  for (uint64_t first = 0; first < 120; first += 30) {
    store(first, 30);
    leases.push_back(lookup(chain(first, 30), true));
    ASSERT_EQ(leases.back().plan.found_chunks, 30u);
  }
  EXPECT_EQ(store(600, 1).stored_chunks, 1u);
  for (uint64_t i = 0; i < leases.size(); ++i) {
    auto loaded = load_leased(leases[i], 30 * i, 30, true, 30 * i);
    EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
    EXPECT_EQ(loaded.chunks, 30u);
    EXPECT_TRUE(delivered(30 * i + 29));
  }
}

TEST_F(LeasedLoads, OfManyLeasesAtOnceAllGetTheirChains) {
  std::vector<lookup_answer> leases;
  for (uint64_t first = 0; first < 90; first += 30) {
    store(first, 30);
    leases.push_back(lookup(chain(first, 30), true));
    ASSERT_EQ(leases.back().plan.found_chunks, 30u);
  }
  std::vector<box<load_result>> loads;
  for (uint64_t i = 0; i < leases.size(); ++i) {
    leased_chunks leased{leases[i], 30 * i};
    loads.push_back(begin_load(30 * i, 30, nullptr, nullptr, &leased));
  }
  settle();
  for (const auto& one : loads) {
    ASSERT_TRUE(*one) << "loads wait for each other's leases";
    EXPECT_EQ((*one)->chunks, 30u);
  }
  for (uint64_t n = 0; n < 90; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(LeasedLoads, ALeaseEndsWhereItWouldKeepTooMuchInHostMemory) {
  store(0, 30);
  forget(disk_tier(), 28, 2);
  ASSERT_EQ(present(group->host, 0, 30), 30u);
  auto leased = lookup(chain(0, 30), true);
  EXPECT_EQ(leased.plan.requested_chunks, 30u);
  EXPECT_EQ(leased.plan.found_chunks, 28u) << "the last two, held alone, would keep all before them";
  EXPECT_EQ(report(group->host).held_objects, 16u);
  EXPECT_EQ(store(100, 12).stored_chunks, 12u);
  EXPECT_EQ(load_leased(leased, 0, 28).chunks, 28u);
}

TEST_F(LeasedLoads, WhatIsOnlyOnDiskDoesNotShortenALeaseThatHasRoom) {
  store(0, 10);
  forget_host(2, 2);
  forget(disk_tier(), 9, 1);
  auto leased = lookup(chain(0, 10), true);
  EXPECT_EQ(leased.plan.found_chunks, 10u);
  EXPECT_EQ(load_leased(leased, 0, 10).chunks, 10u);
}

TEST_F(LeasedLoads, ALeaseHoldsTheBeginningOfItsChainInHostMemory) {
  store(0, 20);
  forget_host(5, 3);
  auto leased = lookup(chain(0, 20), true);
  EXPECT_EQ(leased.plan.found_chunks, 20u);
  EXPECT_EQ(report(group->host).held_objects, 5u) << "what lies behind would keep all before it there";
  EXPECT_EQ(report(disk_tier()).held_objects, 20u);
  EXPECT_EQ(load_leased(leased, 0, 20).chunks, 20u);
}

TEST_F(LeasedLoads, ClearedChunksAreGone) {
  for (tier_kind where : {tier_kind::host, tier_kind::disk}) {
    store(0, 8);
    if (where == tier_kind::disk)
      forget_host(0, 8);
    auto leased = lookup(chain(0, 8), true);
    ASSERT_EQ(leased.held.size(), 1u);
    ASSERT_EQ(leased.held.front().tier, where);
    clear(group->host);
    clear(disk_tier());
    for (bool copies : {true, false})
      EXPECT_EQ(load_leased(leased, 0, 8, copies).failure.code, errc::gone);
  }
}

TEST_F(LeasedLoads, WithoutACopyAChainComesPieceByPiece) {
  store(0, 80);
  auto leased = lookup(chain(0, 80), true);
  uint64_t from = 0;
  size_t pieces = 0;
  while (from < 80 && pieces < 40) {
    auto part = load_leased(leased, from, 80 - from, false);
    ASSERT_EQ(part.failure.code, errc::ok) << part.failure.text;
    ASSERT_NE(part.chunks, 0u);
    EXPECT_EQ(part.places->size(), part.chunks);
    EXPECT_LE(report(group->host).held_objects, 24u);
    from += part.chunks;
    ++pieces;
    settle();
  }
  EXPECT_EQ(from, 80u);
  EXPECT_GT(pieces, 1u);
}

TEST_F(LeasedLoads, WithoutACopyNobodyWaitsForWhatLeasesHold) {
  store(0, 80);
  auto leased = lookup(chain(0, 80), true);
  auto all_that_fits = load_leased(leased, 0, 80, false);
  auto refused = load_leased(leased, all_that_fits.chunks, 8, false);
  EXPECT_EQ(refused.failure.code, errc::no_space);
  EXPECT_NE(refused.failure.text.find("leases"), std::string::npos) << refused.failure.text;
  EXPECT_EQ(load_leased(leased, all_that_fits.chunks, 8).chunks, 8u)
      << "into a region it needs no room to stay";
}
