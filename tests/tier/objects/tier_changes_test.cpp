// Tests what a tier sends after a change of its objects, and its part in a round of eviction.
#include "tier/objects/tier_changes.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace tier_changes_test {

constexpr uint64_t page = 8192; // physical size of an object of 4 KiB

struct TierChanges : ::testing::Test {
  tier_changes tier{tier_kind::host};
  uint64_t next_offset = 0;

  std::vector<object_place> store(uint64_t first, size_t count) {
    acquire_request request;
    request.objects = chain(first, count);
    auto wanted = tier.objects().missing(request);
    std::vector<extent> granted;
    for (uint64_t size : wanted.sizes) {
      granted.push_back({next_offset, size});
      next_offset += size;
    }
    auto taken = tier.objects().acquire(request, wanted, granted);
    tier.objects().publish(taken.places, false);
    return taken.places;
  }
  std::vector<object_id> hold(uint64_t number) {
    return {tier.objects().probe({chain(number, 1), true, false}).places.front().id};
  }
  tier_changes::news news_after(const std::vector<extent>& freed) {
    tier.free(freed);
    return tier.drain_news();
  }
  /// A round for which the policy names nothing; false: it has succeeded.
  bool fails(std::shared_ptr<eviction_round> round) {
    tier.begin(std::move(round));
    tier.question();
    tier.choose(named({}));
    tier.evict();
    return tier.take_ended()->failed();
  }
  /// Makes a round of an allocator without free space that wants `bytes`.
  static std::shared_ptr<eviction_round> round_for(uint64_t bytes) {
    auto space = make_allocator("free_list", {.capacity_bytes = 4 * page});
    (void) (*space)->allocate(std::vector<uint64_t>(4, page));
    auto round = std::make_shared<eviction_round>();
    round->ask_for({{1, {bytes}, nullptr}}, std::move(*space));
    return round;
  }
  victim_answer named(std::vector<uint64_t> numbers) {
    victim_answer answer;
    for (uint64_t number : numbers) {
      answer.victims.push_back(to_entry_key(key_of(number)));
      answer.above.push_back({});
      answer.bytes += page;
    }
    return answer;
  }
};

TEST_F(TierChanges, NotesAreSentAndAMarkFollowsEveryFewBatches) {
  EXPECT_TRUE(tier.drain_news().notes.notes.empty());
  size_t marks = 0;
  for (size_t i = 0; i < note_queue::batches_between_marks; ++i) {
    store(i, 1);
    auto news = tier.drain_news();
    EXPECT_EQ(news.notes.notes.size(), 1u);
    EXPECT_EQ(news.notes.tier, tier_kind::host);
    marks += news.mark;
  }
  EXPECT_EQ(marks, 1u);
}

TEST_F(TierChanges, NotesAreKeptWhileThePolicyIsBehind) {
  size_t sent = 0;
  for (; sent < 1000; ++sent) {
    store(sent, 1);
    if (tier.drain_news().notes.notes.empty())
      break;
  }
  ASSERT_LT(sent, 1000u);
  tier.marked();
  auto kept = tier.take_kept_notes();
  ASSERT_EQ(kept.batches.size(), 1u);
  EXPECT_EQ(kept.batches.front().notes.size(), 1u);
}

TEST_F(TierChanges, FreedSpaceGoesToTheAllocator) {
  auto news = news_after({{0, page}, {page, page}});
  EXPECT_EQ(bytes_of(news.freed), 2 * page);
  EXPECT_FALSE(news.evictable);
}

TEST_F(TierChanges, WhatLeavesWithItsSegmentIsFreedAndCounted) {
  store(0, 3);
  tier.drain_news();
  tier.objects().departures().retire({0, 2 * page});
  auto news = news_after({{8 * page, page}});
  EXPECT_EQ(news.retired_objects, 2u);
  EXPECT_EQ(news.retired_bytes, 2 * page);
  EXPECT_EQ(bytes_of(news.freed), 3 * page);
}

TEST_F(TierChanges, ARoundEvictsWhatThePolicyNames) {
  store(0, 4);
  tier.drain_news();
  tier.begin(round_for(page));
  EXPECT_EQ(tier.question().tier, tier_kind::host);
  tier.choose(named({3}));
  auto done = tier.evict();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->objects, 1u);
  EXPECT_EQ(done->bytes, page);
  EXPECT_EQ(done->excess_bytes, 0u);
  EXPECT_FALSE(done->ahead);
  EXPECT_TRUE(tier.drain_news().freed.empty()) << "it travels with the round";
  auto ended = tier.take_ended();
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->failed());
  EXPECT_EQ(tier.report({}).evictions, 1u);
  EXPECT_EQ(tier.report({}).objects, 3u);
}

TEST_F(TierChanges, HeldObjectsThatThePolicyNamesStayWithWhatTheyContinueAndItIsAskedAgain) {
  store(0, 2);
  store(10, 2);
  auto held = hold(1);
  EXPECT_EQ(tier.drain_news().notes.notes.size(), 4u) << "the policy does not know of the hold";
  tier.begin(round_for(page));
  tier.question();
  auto chain = named({1, 0});
  chain.above.front() = chain.victims.back();
  tier.choose(std::move(chain));
  EXPECT_EQ(tier.evict()->objects, 0u);
  EXPECT_FALSE(tier.take_ended());
  auto notes = tier.drain_news().notes.notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes.front().kind, note_kind::pin);
  EXPECT_EQ(notes.front().key, to_entry_key(key_of(1)));
  tier.question();
  tier.choose(named({11}));
  EXPECT_EQ(tier.evict()->objects, 1u);
  auto ended = tier.take_ended();
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->failed());
  tier.drain_news();
  tier.objects().release(held);
  auto after = tier.drain_news().notes.notes;
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after.front().kind, note_kind::unpin);
}

TEST_F(TierChanges, VictimsThatAreWrittenFirstLeaveAfterwards) {
  store(0, 4);
  tier.drain_news();
  tier.begin(round_for(page));
  EXPECT_TRUE((tier.question(), tier.choose(named({3})), true));
  EXPECT_EQ(tier.begin_demotion().size(), 1u);
  auto done = tier.evict();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->objects, 1u);
  ASSERT_TRUE(tier.take_ended());
}

TEST_F(TierChanges, NoVictimLeavesIfTheRequestFitsOnceItIsWritten) {
  store(0, 4);
  tier.drain_news();
  tier.begin(round_for(page));
  tier.question();
  tier.choose(named({3}));
  auto victims = tier.begin_demotion();
  EXPECT_TRUE(news_after({{0, page}}).freed.empty()) << "it is the round's";
  EXPECT_FALSE(tier.evict());
  EXPECT_TRUE(tier.take_ended());
  EXPECT_EQ(tier.objects().table().get(victims[0])->state(), object_state::published);
}

TEST_F(TierChanges, NoVictimLeavesForARequestThatHasEndedMeanwhile) {
  store(0, 4);
  tier.drain_news();
  auto space = make_allocator("free_list", {.capacity_bytes = 4 * page});
  (void) (*space)->allocate(std::vector<uint64_t>(4, page));
  auto waiting = std::make_shared<request_context>();
  auto round = std::make_shared<eviction_round>();
  round->ask_for({{1, {page}, waiting}}, std::move(*space));
  tier.begin(round);
  tier.question();
  tier.choose(named({3}));
  tier.begin_demotion();
  waiting->ended = errc::cancelled;
  EXPECT_FALSE(tier.evict());
  EXPECT_TRUE(tier.take_ended());
  EXPECT_EQ(tier.report({}).objects, 4u);
}

TEST_F(TierChanges, WhatIsFreedDuringARoundStaysWithIt) {
  store(0, 4);
  tier.drain_news();
  tier.begin(round_for(page));
  tier.question();
  EXPECT_TRUE(news_after({{0, page}}).freed.empty());
  tier.choose(named({3}));
  EXPECT_FALSE(tier.evict()) << "the request fits already";
  EXPECT_TRUE(tier.take_ended());
}

TEST_F(TierChanges, AfterAFailedRoundTheAllocatorIsToldOnceThatSomethingCanBeEvicted) {
  store(0, 1);
  auto held = hold(0);
  tier.drain_news();
  tier.begin(round_for(page));
  tier.question();
  tier.choose(named({}));
  EXPECT_EQ(tier.evict()->objects, 0u);
  auto ended = tier.take_ended();
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->failed());
  EXPECT_FALSE(tier.drain_news().evictable);
  tier.objects().release(held);
  EXPECT_TRUE(tier.drain_news().evictable);
  tier.objects().release(hold(0));
  EXPECT_FALSE(tier.drain_news().evictable) << "nothing failed since";
}

TEST_F(TierChanges, AfterAFailedRoundWhoeverWaitsIsToldOnceThatLeasesAloneHoldWhatTransfersHeld) {
  auto ledger = std::make_shared<lease_ledger>();
  tier.objects().charges(ledger);
  store(0, 2);
  auto all = tier.objects().probe({chain(0, 2), true, false}).places;
  tier.drain_news();
  EXPECT_FALSE(tier.waits_for_transfers());
  ASSERT_TRUE(fails(round_for(page)));
  EXPECT_TRUE(tier.waits_for_transfers());
  EXPECT_TRUE(tier.drain_news().empty());
  auto client = ledger->open();
  auto first = client->charge(std::make_shared<object_hold>(nullptr, std::vector{all.front()}));
  EXPECT_TRUE(tier.drain_news().empty()) << "a transfer holds the other one";
  auto second = client->charge(std::make_shared<object_hold>(nullptr, std::vector{all.back()}));
  auto news = tier.drain_news();
  EXPECT_TRUE(news.changed);
  EXPECT_TRUE(news.evictable);
  EXPECT_FALSE(tier.waits_for_transfers());
  ASSERT_TRUE(fails(round_for(page)));
  EXPECT_FALSE(tier.waits_for_transfers()) << "only leases hold";
  EXPECT_TRUE(tier.drain_news().empty());
}

TEST_F(TierChanges, OfARoundOfATenantTheAllocatorIsNotTold) {
  auto ledger = std::make_shared<lease_ledger>();
  tier.objects().charges(ledger);
  store(0, 1);
  auto place = tier.objects().probe({chain(0, 1), true, false}).places.front();
  tier.drain_news();
  auto own = std::make_shared<eviction_round>();
  own->ask_own(tenant_id{1}, page, page, 0);
  tier.begin(own);
  tier.question();
  tier.choose(named({}));
  ASSERT_TRUE(tier.take_ended()->failed());
  EXPECT_TRUE(tier.waits_for_transfers());
  auto lease = ledger->open()->charge(std::make_shared<object_hold>(nullptr, std::vector{place}));
  auto news = tier.drain_news();
  EXPECT_TRUE(news.changed) << "which the tenant's requests are told";
  EXPECT_FALSE(news.evictable);
}

TEST_F(TierChanges, NobodyWaitsForTransfersOnceSomethingCanBeEvicted) {
  tier.objects().charges(std::make_shared<lease_ledger>());
  store(0, 1);
  auto held = hold(0);
  tier.drain_news();
  ASSERT_TRUE(fails(round_for(page)));
  tier.objects().release(held);
  tier.drain_news();
  EXPECT_FALSE(tier.waits_for_transfers());
}

TEST_F(TierChanges, WithoutAPolicyTheRoundFails) {
  tier.begin(round_for(page));
  tier.question();
  tier.give_up("the eviction policy has ended");
  EXPECT_FALSE(tier.evict());
  auto ended = tier.take_ended();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->holders(), "the eviction policy has ended");
  EXPECT_FALSE(tier.waits_for_transfers()) << "it would end like this again and again";
}

} // namespace tier_changes_test
