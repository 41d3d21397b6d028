// Tests what leases hold, and how much more a connection may lease.
#include "tier/search/lease_ledger.hpp"

#include <gtest/gtest.h>

#include <future>

#include <thread>

using namespace terrace;

namespace {

struct LeaseLedger : ::testing::Test {
  static constexpr uint64_t limit = 1600;
  ledger_ptr ledger = std::make_shared<lease_ledger>();
  account_ptr one = ledger->open(), two = ledger->open();

  /// Holds objects `first`, `first + 1`, ... of 10 bytes.
  static hold_ptr held(uint64_t first, size_t count) {
    std::vector<object_place> places(count);
    for (size_t i = 0; i < count; ++i)
      places[i] = {static_cast<object_id>(first + i), 0, 8, 10};
    return std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
  }
  static uint64_t room(const account_ptr& of) { return of->claim_for(UINT64_MAX, limit).bytes(); }
};

TEST_F(LeaseLedger, CountsAnObjectOnceInTotalAndOncePerConnection) {
  auto first = one->charge(held(1, 4));
  auto again = one->charge(held(1, 4));
  auto other = two->charge(held(3, 4));
  EXPECT_EQ(one->bytes(), 40u);
  EXPECT_EQ(two->bytes(), 40u);
  EXPECT_EQ(ledger->bytes(), 60u);
  first.reset();
  EXPECT_EQ(one->bytes(), 40u);
  again.reset();
  EXPECT_EQ(one->bytes(), 0u);
  EXPECT_EQ(ledger->bytes(), 40u);
  other.reset();
  EXPECT_EQ(ledger->bytes(), 0u);
}

TEST_F(LeaseLedger, AChargeEndsWithItsLastCopy) {
  auto lease = one->charge(held(1, 4));
  auto reader = lease;
  lease.reset();
  EXPECT_EQ(one->bytes(), 40u);
  EXPECT_EQ(reader->places().size(), 4u);
  one.reset(); // the connection ends before its reader
  reader.reset();
  EXPECT_EQ(ledger->bytes(), 0u);
}

TEST_F(LeaseLedger, AHoldOfManyObjectsEndsElsewhere) {
  auto ends = std::make_shared<teardown>();
  auto group = std::make_shared<lease_ledger>(lease_bounds{}, ends);
  std::promise<void> gate;
  ends->run([waiting = gate.get_future().share()] { waiting.wait(); });
  auto few = group->open()->charge(held(1, object_hold::many_places - 1));
  auto many = group->open()->charge(held(1, object_hold::many_places));
  uint64_t bytes = group->bytes();
  many.reset();
  EXPECT_EQ(group->bytes(), bytes) << "it ends behind the gate";
  gate.set_value();
  ends->finish();
  EXPECT_EQ(group->bytes(), (object_hold::many_places - 1) * 10);
  few.reset();
  EXPECT_EQ(group->bytes(), 0u) << "at once";
}

TEST_F(LeaseLedger, NotifiesEachWhoAskedOnceThatLeasesGrew) {
  size_t first = 0, second = 0;
  ledger->notify_of_growth([&] { first += ledger->now().bytes; }); // takes the lock
  ledger->notify_of_growth([&] { ++second; });
  EXPECT_EQ(first, 0u);
  auto lease = one->charge(held(1, 4));
  EXPECT_EQ(first, 40u);
  EXPECT_EQ(second, 1u);
  auto more = two->charge(held(5, 4));
  EXPECT_EQ(first, 40u) << "it has not asked again";
  EXPECT_EQ(second, 1u);
}

TEST_F(LeaseLedger, DoesNotGrowByWhatIsLeasedAlready) {
  bool grown = false;
  auto lease = one->charge(held(1, 4));
  ledger->notify_of_growth([&] { grown = true; });
  auto again = two->charge(held(1, 4));
  again.reset();
  lease.reset();
  EXPECT_FALSE(grown);
  lease = two->charge(held(4, 2));
  EXPECT_TRUE(grown);
}

TEST_F(LeaseLedger, AbsentPlacesCostNothing) {
  auto some = std::make_shared<object_hold>(release_sink_ptr{},
                                            std::vector<object_place>{{}, {object_id{7}, 0, 8, 10}, {}});
  auto lease = one->charge(some);
  EXPECT_EQ(ledger->bytes(), 10u);
}

TEST_F(LeaseLedger, WhatIsChargedInStepsIsNotClaimedAnyLonger) {
  auto lease = held(1, 100);
  auto claimed = one->claim_for(lease->places(), limit);
  EXPECT_EQ(claimed.bytes(), 1000u);
  EXPECT_EQ(room(two), 450u);
  lease_account::gradual_charge charge(one, lease);
  EXPECT_TRUE(charge.add_some(60, &claimed));
  EXPECT_EQ(claimed.bytes(), 400u);
  EXPECT_EQ(one->bytes(), 1000u);
  EXPECT_EQ(room(two), 450u) << "neither more nor less than before";
  EXPECT_FALSE(charge.add_some(60, &claimed));
  EXPECT_EQ(claimed.bytes(), 0u);
  EXPECT_EQ(one->bytes(), 1000u);
  EXPECT_EQ(room(two), 450u);
}

TEST_F(LeaseLedger, OneConnectionGetsThreeQuartersAndTheNextOneTheSameShareOfTheRest) {
  EXPECT_EQ(room(one), 1200u);
  auto most = one->charge(held(1, 120));
  EXPECT_EQ(room(one), 0u);
  EXPECT_EQ(room(two), 300u);
  auto rest = two->charge(held(1000, 30));
  EXPECT_EQ(room(two), 0u);
  EXPECT_EQ(room(ledger->open()), 75u);
}

TEST_F(LeaseLedger, ConnectionsThatLeaseStepByStepGetEqualShares) {
  std::vector<account_ptr> accounts{one, two, ledger->open()};
  std::vector<hold_ptr> leases;
  std::vector<uint64_t> got(accounts.size());
  uint64_t next = 1;
  for (bool some = true; some;) {
    some = false;
    for (size_t i = 0; i < accounts.size(); ++i)
      if (auto claim = accounts[i]->claim_for(10, limit); claim.complete()) {
        leases.push_back(accounts[i]->charge(held(next++, 1)));
        got[i] += 10;
        some = true;
      }
  }
  for (uint64_t each : got)
    EXPECT_NEAR(static_cast<double>(each), 480, 10); // 3/(3n+1) of the limit
  EXPECT_LE(ledger->bytes(), limit);
}

TEST_F(LeaseLedger, WhatIsLeasedAlreadyIsFreeForAll) {
  auto all = one->charge(held(1, 120));
  auto shared = held(1, 120);
  auto claim = two->claim_for(shared->places(), limit);
  EXPECT_TRUE(claim.complete());
  EXPECT_EQ(claim.bytes(), 0u);
  auto lease = two->charge(shared);
  EXPECT_EQ(ledger->bytes(), 1200u);
  auto known = ledger->leased(held(120, 2)->places());
  EXPECT_EQ(known, (std::vector<bool>{true, false}));
}

TEST_F(LeaseLedger, NobodyElseLeasesWhatIsClaimed) {
  auto claim = one->claim_for(held(1, 200)->places(), limit);
  EXPECT_FALSE(claim.complete());
  EXPECT_EQ(claim.bytes(), 1200u);
  EXPECT_EQ(ledger->bytes(), 0u); // nothing is leased yet
  EXPECT_EQ(room(two), 300u);
  EXPECT_EQ(room(one), 0u);
  { auto moved = std::move(claim); }
  EXPECT_EQ(room(two), 1200u);
}

// ---- a tier below ----

TEST_F(LeaseLedger, OfATierBelowAConnectionGetsTheSameShare) {
  constexpr uint64_t capacity = 16'000; // leases get 12,000
  auto too_much = [&](const account_ptr& of, uint64_t bytes, uint64_t held) {
    return of->too_much_below(tier_kind::disk, bytes, held, capacity);
  };
  EXPECT_EQ(too_much(one, 9'000, 9'000), 0u) << "three quarters";
  EXPECT_EQ(too_much(one, 10'000, 10'000), 1'000u);
  auto most = one->charge_below(tier_kind::disk, held(1, 4), 9'000);
  EXPECT_EQ(most->places().size(), 4u);
  EXPECT_EQ(too_much(one, 100, 9'100), 100u);
  EXPECT_EQ(too_much(two, 2'250, 11'250), 0u) << "three quarters of what is left";
  EXPECT_EQ(too_much(two, 2'350, 11'350), 100u);
  EXPECT_EQ(one->bytes_below(tier_kind::host), 0u);
  auto reader = most;
  most.reset();
  EXPECT_EQ(one->bytes_below(tier_kind::disk), 9'000u);
  reader.reset();
  EXPECT_EQ(one->bytes_below(tier_kind::disk), 0u);
}

TEST_F(LeaseLedger, OfATierBelowMoreLeasesOnTheSameObjectsAreFree) {
  auto first = one->charge_below(tier_kind::disk, held(1, 4), 9'000);
  auto again = one->charge_below(tier_kind::disk, held(1, 4), 9'000);
  EXPECT_EQ(one->too_much_below(tier_kind::disk, 9'000, 9'000, 16'000), 0u);
}

TEST_F(LeaseLedger, OfATierBelowNobodyMayHoldMoreThanAllLeasesMay) {
  auto alone = std::make_shared<lease_ledger>(lease_bounds{75, 100, 75})->open();
  EXPECT_EQ(alone->too_much_below(tier_kind::disk, 12'000, 12'000, 16'000), 0u);
  EXPECT_EQ(alone->too_much_below(tier_kind::disk, 12'500, 12'500, 16'000), 500u);
  EXPECT_EQ(alone->too_much_below(tier_kind::disk, 100, 12'500, 16'000), 500u) << "others hold it";
}

TEST_F(LeaseLedger, IsSafeOnSeveralThreads) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto own = ledger->open();
      for (uint64_t i = 0; i < 200; ++i) {
        auto what = held(1 + t % 2 * 100 + i % 7, 300);
        auto claim = own->claim_for(what->places(), 1 << 20);
        auto lease = own->charge(what);
        EXPECT_GE(ledger->bytes(), 3000u);
      }
    });
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(ledger->bytes(), 0u);
}

} // namespace
