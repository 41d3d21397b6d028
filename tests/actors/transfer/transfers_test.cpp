// Stores and loads through real tiers, allocators, policies and copiers, in host memory alone.
#include "group_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct HostTransfers : group_fixture {
  HostTransfers() { start({.host_objects = 8}); }
};

struct RoomyHost : group_fixture {
  RoomyHost() { start({.host_objects = 200}); }
  size_t jobs_of_a_store(uint64_t first, size_t count) {
    auto answer = begin_store(first, count);
    size_t jobs = settle();
    EXPECT_TRUE(*answer && (*answer)->stored_chunks == count);
    return jobs;
  }
};

struct LongChains : group_fixture {
  LongChains() { start({.host_objects = 700}); }
};

struct GatedTransfers : group_fixture {
  GatedTransfers() { start({.host_objects = 4, .gated_copier = true}); }
  explicit GatedTransfers(const parts_wanted& parts) { start(parts); }
  void copy() {
    caf::anon_send(gate, open_gate{});
    settle();
  }
};

struct GatedWindows : GatedTransfers {
  GatedWindows() : GatedTransfers({.host_objects = 8, .gated_copier = true, .window_objects = 2}) {}
};

} // namespace

TEST_F(HostTransfers, WhatWasStoredIsLoadedBitByBit) {
  auto stored = store(0, 4);
  EXPECT_EQ(stored.failure.code, errc::ok) << stored.failure.text;
  EXPECT_EQ(stored.stored_chunks, 4u);
  EXPECT_EQ(stored.bytes, 4 * payload);
  auto loaded = load(0, 4);
  EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
  EXPECT_EQ(loaded.chunks, 4u);
  EXPECT_EQ(loaded.bytes_by_tier[static_cast<size_t>(tier_kind::host)], 4 * payload);
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(HostTransfers, AnActorThatHasAnsweredTakesAnotherJobAndKeepsNothingOfTheLast) {
  caf::actor storing, loading;
  auto of = context();
  auto first = begin_store(0, 2, of, &storing);
  settle();
  EXPECT_EQ(of.use_count(), 1);
  auto second = begin_store(2, 3, of, &storing);
  settle();
  ASSERT_TRUE(*first && *second);
  EXPECT_EQ((*first)->stored_chunks, 2u);
  EXPECT_EQ((*second)->stored_chunks, 3u);
  EXPECT_EQ((*second)->bytes, 3 * payload);
  for (uint64_t n : {0, 3}) {
    auto loaded = begin_load(n, 2, of, &loading);
    settle();
    ASSERT_TRUE(*loaded);
    EXPECT_EQ((*loaded)->chunks, 2u);
    EXPECT_EQ((*loaded)->bytes, 2 * payload);
    EXPECT_TRUE(delivered(n) && delivered(n + 1));
    EXPECT_EQ(of.use_count(), 1);
  }
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(HostTransfers, AnActorWhoseTransferFailedEnds) {
  caf::actor storing, loading;
  auto of = context();
  of->ended = errc::cancelled;
  auto stored = begin_store(0, 1, of, &storing);
  auto loaded = begin_load(0, 1, of, &loading);
  settle();
  ASSERT_TRUE(*stored && *loaded);
  EXPECT_EQ((*stored)->failure.code, errc::cancelled);
  EXPECT_EQ((*loaded)->failure.code, errc::cancelled);
  stored = begin_store(0, 1, nullptr, &storing);
  loaded = begin_load(0, 1, nullptr, &loading);
  settle();
  EXPECT_EQ((*stored)->failure.code, errc::internal);
  EXPECT_EQ((*loaded)->failure.code, errc::internal);
}

TEST_F(HostTransfers, ALoadDeliversWholeChunksUpToTheFirstGap) {
  store(0, 2);
  store(3, 1);
  auto loaded = load(0, 4);
  EXPECT_EQ(loaded.failure.code, errc::ok);
  EXPECT_EQ(loaded.chunks, 2u);
  EXPECT_TRUE(delivered(1));
  EXPECT_TRUE(untouched(2));
  EXPECT_TRUE(untouched(3));
}

TEST_F(HostTransfers, StoringWhatIsThereCopiesNothing) {
  store(0, 2);
  auto again = store(0, 3);
  EXPECT_EQ(again.present_chunks, 2u);
  EXPECT_EQ(again.stored_chunks, 1u);
  EXPECT_EQ(again.bytes, payload);
}

TEST_F(RoomyHost, AStoreTakesAtMostTenMessagesWhateverItsObjects) {
  // Beside them: the test's own actor begins, asks, and is answered.
  size_t of_one = jobs_of_a_store(0, 1);
  EXPECT_EQ(jobs_of_a_store(1, 150), of_one);
  EXPECT_LE(of_one, 10u + 4u);
}

TEST_F(HostTransfers, UnderPressureSuffixesLeaveBeforeTheirPrefixes) {
  store(0, 8);
  load(0, 8); // used as a whole
  EXPECT_EQ(store(100, 3).stored_chunks, 3u);
  EXPECT_EQ(present(group->host, 0, 5), 5u);
  EXPECT_EQ(present(group->host, 5, 3), 0u);
  EXPECT_EQ(lookup(chain(0, 8)).plan.found_chunks, 5u);
}

TEST_F(HostTransfers, TheChainThatWasUsedLastStays) {
  store(0, 4);
  store(100, 4);
  load(0, 4);
  store(50, 4);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  EXPECT_EQ(present(group->host, 100, 4), 0u);
}

TEST_F(HostTransfers, AStoreLongerThanTheArenaStreamsPastIt) {
  auto stored = store(0, 20);
  EXPECT_EQ(stored.failure.code, errc::ok) << stored.failure.text;
  EXPECT_EQ(stored.stored_chunks, 20u);
  EXPECT_LE(host_used(), 8 * physical);
}

TEST_F(HostTransfers, AStoreWhoseWindowHasNoSpaceGoesOnWithSmallerOnes) {
  store(0, 5);
  auto leased = lookup(chain(0, 5), true); // three remain: a window of four never fits
  ASSERT_EQ(leased.plan.found_chunks, 5u);
  auto stored = store(100, 8);
  EXPECT_EQ(stored.failure.code, errc::ok) << stored.failure.text;
  EXPECT_EQ(stored.stored_chunks, 8u);
  EXPECT_EQ(stored.bytes, 8 * payload);
  EXPECT_EQ(present(group->host, 0, 5), 5u);
  EXPECT_GE(present(group->host, 100, 8), 1u);
}

TEST_F(HostTransfers, AStoreForWhoseFirstChunkThereIsNoSpaceIsRefused) {
  store(0, 8);
  auto leased = lookup(chain(0, 8), true);
  ASSERT_EQ(leased.plan.found_chunks, 8u);
  auto stored = store(100, 8);
  EXPECT_EQ(stored.failure.code, errc::no_space);
  EXPECT_NE(stored.failure.text.find("only the end of leases can make"), std::string::npos)
      << stored.failure.text;
  EXPECT_EQ(stored.stored_chunks, 0u);
  for (uint64_t each : {100, 107}) { // the first, and one that the tier was not asked for
    ASSERT_TRUE(why_gone(each)) << each;
    EXPECT_EQ(why_gone(each)->why, miss_reason::not_admitted);
    EXPECT_EQ(why_gone(each)->refused, refusal_reason::no_room);
  }
  EXPECT_FALSE(why_gone(0));
}

TEST_F(HostTransfers, AStoreWaitsWhileAllIsHeldAndGoesOnWhenAHoldEnds) {
  store(0, 8);
  auto kept = hold(group->host, 0, 8);
  auto waiting = begin_store(100, 2);
  settle();
  EXPECT_FALSE(*waiting);
  EXPECT_EQ(report(group->host).waiting, 1u);
  kept->keep_first(5);
  settle();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::ok) << (*waiting)->failure.text;
  EXPECT_EQ(present(group->host, 0, 5), 5u);
}

TEST_F(HostTransfers, AHoldThatEndsAtAnyMomentReleasesWhoeverWaitsForItsMemory) {
  // The hold ends after so many steps of the store: before, while and after the policy is asked for victims.
  for (size_t steps = 0; steps < 30; ++steps) {
    SCOPED_TRACE(steps);
    uint64_t first = steps % 2 == 0 ? 0 : 100;
    store(first, 8);
    ASSERT_EQ(present(group->host, first, 8), 8u);
    auto kept = hold(group->host, first, 8);
    auto waiting = begin_store(200, 1);
    for (size_t i = 0; i < steps; ++i)
      sched.try_run_once();
    kept.reset();
    settle();
    ASSERT_TRUE(*waiting) << "nobody told the allocator that something may leave";
    ASSERT_EQ((*waiting)->stored_chunks + (*waiting)->present_chunks, 1u);
    forget_host(200, 1);
  }
}

TEST_F(HostTransfers, ObjectsThatShareTheirPolicyNameDoNotKeepTheTierBusy) {
  // Opaque digests can be made so that two have one name: the first word cancels out what the second enters with.
  auto twin = [](uint64_t second) {
    auto batch = std::make_shared<object_batch>(*chain(0, 1, payload));
    uint64_t words[2] = {0xa0761d6478bd642fULL, second};
    std::memcpy(batch->keys[0].chunk.bytes.data(), words, sizeof words);
    return batch;
  };
  ASSERT_EQ(to_entry_key(twin(1)->keys[0]), to_entry_key(twin(2)->keys[0]));
  auto publish = [&](const batch_ptr& objects) {
    acquire_request request;
    request.objects = objects;
    auto acquired = ask<acquire_answer>(group->host, request);
    settle();
    ask<publish_answer>(group->host, publish_request{(*acquired)->places, false});
    settle();
  };
  auto hold_of = [&](const batch_ptr& objects) {
    auto answer = ask<probe_answer>(group->host, probe_request{objects, true, false});
    settle();
    return (*answer)->held;
  };
  store(1, 6);
  auto kept = hold(group->host, 1, 6);
  publish(twin(1));
  auto first = hold_of(twin(1));
  publish(twin(2));
  hold_of(twin(2)).reset(); // the policy believes that the name may leave
  settle();
  auto waiting = begin_store(100, 1);
  size_t steps = 0;
  while (steps < 1000 && sched.try_run_once())
    ++steps;
  ASSERT_LT(steps, 1000u) << "the tier asks for victims for ever";
  first.reset();
  settle();
  EXPECT_TRUE(*waiting);
}

TEST_F(HostTransfers, ADeadlineWhileAllIsHeldIsNoSpaceAndNamesTheHolders) {
  store(0, 8);
  auto kept = hold(group->host, 0, 8);
  auto of = context();
  auto waiting = begin_store(100, 1, of);
  settle();
  ASSERT_FALSE(*waiting);
  of->ended = errc::deadline;
  caf::anon_send(group->host, sweep_notice{});
  settle();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::no_space);
  EXPECT_NE((*waiting)->failure.text.find("in 8 objects"), std::string::npos) << (*waiting)->failure.text;
  EXPECT_EQ(report(group->host).waiting, 0u);
}

TEST_F(HostTransfers, WhoMayNotWaitIsRefusedAtOnce) {
  store(0, 8);
  auto kept = hold(group->host, 0, 8);
  acquire_request request;
  request.objects = chain(100, 1, payload);
  request.may_wait = false;
  auto answer = ask<acquire_answer>(group->host, request);
  settle();
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failure.code, errc::no_space);
}

TEST_F(HostTransfers, AnAbandonedReservationGivesItsSpaceBack) {
  acquire_request request;
  request.objects = chain(0, 8, payload);
  auto answer = ask<acquire_answer>(group->host, request);
  settle();
  EXPECT_EQ(host_used(), 8 * physical);
  EXPECT_EQ(present(group->host, 0, 8), 0u);
  answer->reset();
  settle();
  EXPECT_EQ(host_used(), 0u);
}

TEST_F(HostTransfers, AnAbandonedReservationReleasesWhoeverWaitsForTheSameObjects) {
  acquire_request request;
  request.objects = chain(0, 2, payload);
  auto first = ask<acquire_answer>(group->host, request);
  settle();
  auto second = begin_store(0, 2);
  settle();
  EXPECT_FALSE(*second);
  first->reset();
  settle();
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->stored_chunks, 2u);
}

TEST_F(HostTransfers, WhatAnAbandonedReservationGivesBackIsEnoughTogetherWithWhatMayLeave) {
  store(0, 8);
  auto kept = hold(group->host, 0, 6);
  acquire_request request;
  request.objects = chain(100, 1, payload);
  auto reserved = ask<acquire_answer>(group->host, request);
  settle();
  ASSERT_EQ(present(group->host, 0, 8), 7u) << "one has left for it";
  auto waiting = begin_store(200, 2);
  settle();
  EXPECT_FALSE(*waiting);
  EXPECT_EQ(present(group->host, 0, 8), 7u) << "the other one that may leave would not be enough";
  reserved->reset();
  settle();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->stored_chunks, 2u);
  EXPECT_EQ(present(group->host, 200, 2), 2u);
}

TEST_F(HostTransfers, RequestsThatADeadTierOwesAnAnswerEndAsInternal) {
  store(0, 8);
  auto kept = hold(group->host, 0, 8);
  auto waiting = begin_store(100, 1);
  settle();
  ASSERT_FALSE(*waiting);
  stop(group->host);
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::internal);
  auto late = store(101, 1);
  EXPECT_EQ(late.failure.code, errc::internal);
  EXPECT_EQ(load(0, 1).failure.code, errc::internal);
  EXPECT_EQ(lookup(chain(0, 1), true).failure.code, errc::internal);
}

TEST_F(GatedTransfers, AnObjectIsInvisibleUntilItsLastByteIsCopied) {
  auto storing = begin_store(0, 2);
  settle();
  EXPECT_FALSE(*storing);
  EXPECT_EQ(present(group->host, 0, 2), 0u);
  copy();
  ASSERT_TRUE(*storing);
  EXPECT_EQ(present(group->host, 0, 2), 2u);
}

TEST_F(GatedTransfers, TwoStoresOfTheSameChunksCopyThemOnce) {
  auto first = begin_store(0, 2);
  auto second = begin_store(0, 2);
  settle();
  copy();
  ASSERT_TRUE(*first && *second);
  EXPECT_EQ((*first)->bytes + (*second)->bytes, 2 * payload);
  EXPECT_EQ((*first)->stored_chunks + (*second)->stored_chunks, 2u);
  EXPECT_EQ((*first)->present_chunks + (*second)->present_chunks, 2u);
}

TEST_F(GatedTransfers, ACopyKeepsItsMemoryAlthoughItsTransferWasKilled) {
  caf::actor worker;
  auto killed = begin_store(0, 4, nullptr, &worker);
  settle();
  stop(worker);
  EXPECT_TRUE(*killed);
  EXPECT_EQ(host_used(), 4 * physical); // the copier may be writing there
  auto next = begin_store(100, 1);
  settle();
  EXPECT_EQ(report(group->host).waiting, 1u);
  copy();
  EXPECT_EQ(report(group->host).waiting, 0u);
  copy();
  ASSERT_TRUE(*next);
  EXPECT_EQ((*next)->stored_chunks, 1u);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
}

TEST_F(GatedTransfers, AStoreThatIsCancelledWhileItsBytesAreCopiedLeavesNothing) {
  auto of = context();
  auto storing = begin_store(0, 2, of);
  settle();
  of->ended = errc::cancelled;
  copy();
  ASSERT_TRUE(*storing);
  EXPECT_EQ((*storing)->failure.code, errc::cancelled);
  EXPECT_EQ(host_used(), 0u);
}

TEST_F(GatedWindows, AStoreThatIsCancelledBetweenThemLeavesWholeChunks) {
  auto of = context();
  auto storing = begin_store(0, 4, of);
  settle();
  copy();
  ASSERT_FALSE(*storing);
  of->ended = errc::cancelled;
  while (!*storing)
    copy();
  EXPECT_EQ((*storing)->failure.code, errc::cancelled);
  EXPECT_EQ(present(group->host, 0, 4), 2u) << "those of the first window";
  EXPECT_EQ(host_used(), 2 * physical);
  auto loaded = begin_load(0, 4);
  settle();
  while (!*loaded)
    copy();
  EXPECT_EQ((*loaded)->chunks, 2u);
  EXPECT_TRUE(delivered(0) && delivered(1));
}

// ---- long lookups ----

TEST_F(LongChains, ALookupOfManySlicesFindsAllOfALongChain) {
  ASSERT_EQ(store(0, 600).failure.code, errc::ok);
  auto found = lookup(chain(0, 600), true);
  EXPECT_EQ(found.plan.found_chunks, 600u);
  ASSERT_TRUE(held_in(found.held, tier_kind::host));
  ASSERT_EQ(held_in(found.held, tier_kind::host)->places().size(), 600u);
  for (const object_place& place : held_in(found.held, tier_kind::host)->places())
    EXPECT_TRUE(place.present());
  EXPECT_EQ(report(group->host).held_objects, 600u);
  found = {};
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(LongChains, ALookupStopsAfterTheSliceThatBreaksTheChain) {
  ASSERT_EQ(store(0, 600).failure.code, errc::ok);
  forget(group->host, 10, 1);
  uint64_t asked = report(group->host).hits + report(group->host).misses;
  auto found = lookup(chain(0, 600), true);
  EXPECT_EQ(found.plan.found_chunks, 10u);
  ASSERT_TRUE(held_in(found.held, tier_kind::host));
  EXPECT_EQ(held_in(found.held, tier_kind::host)->places().size(), 10u);
  EXPECT_EQ(report(group->host).held_objects, 10u); // what lies behind the hole is let go
  EXPECT_LT(report(group->host).hits + report(group->host).misses, asked + 600);
}
