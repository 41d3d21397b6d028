// Tests which requests wait for space, in which order, and what its allocator asks for.
#include "tier/space/allocation_queue.hpp"

#include "tests/tier/round_fixture.hpp"

using namespace terrace;
using namespace terrace::test;

namespace {
struct AllocationQueue : round_fixture {
  static context_ptr of(uint64_t connection) {
    auto made = context();
    made->connection = connection_id{connection};
    return made;
  }
};
} // namespace

TEST_F(AllocationQueue, AnswersAtOnceWhileThereIsSpace) {
  auto answer = ask({1, 2});
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->extents.size(), 2u);
  EXPECT_EQ(free_bytes(), 5 * page);
  EXPECT_EQ(wanted(), 0u);
}

TEST_F(AllocationQueue, ARequestWaitsWholeAndHoldsNothingWhileItWaits) {
  auto taken = take({6});
  auto waiting = ask({2, 2});
  EXPECT_FALSE(*waiting);
  EXPECT_EQ(free_bytes(), 2 * page);
  EXPECT_EQ(queue->waiting(), 1u);
  queue->free(taken);
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->extents.size(), 2u);
  EXPECT_EQ(queue->waiting(), 0u);
}

TEST_F(AllocationQueue, SmallRequestsPassALargeOneThatWaitsForAsManyBytesAsItAsksFor) {
  auto taken = take({6});
  auto large = ask({3});
  EXPECT_FALSE(*large);
  auto first = ask({2});
  ASSERT_TRUE(*first) << "there is space for it";
  queue->free((*first)->extents);
  EXPECT_FALSE(*large);
  auto second = ask({2});
  EXPECT_FALSE(*second) << "a stream of small ones would starve the large one";
  auto third = ask({1});
  EXPECT_TRUE(*third);
  queue->free(taken);
  EXPECT_TRUE(*large && *second);
}

TEST_F(AllocationQueue, RoomIsMadeForASmallRequestIfThereIsNoneForALargeOne) {
  take({4, 4});
  auto held = hold(0);
  auto large = ask({6});
  EXPECT_EQ(wanted(), 6 * page);
  make_room({1});
  EXPECT_FALSE(*large) << "all that may leave is not enough";
  EXPECT_EQ(wanted(), 0u);
  auto small = ask({2});
  EXPECT_EQ(wanted(), 2 * page);
  EXPECT_EQ(make_room({1}), (numbers{1}));
  EXPECT_TRUE(*small);
  EXPECT_FALSE(*large);
  auto too_much = ask({5});
  EXPECT_EQ(wanted(), 0u) << "of six it was passed by two already";
  queue->free((*small)->extents);
  objects.release(held);
  queue->more_evictable();
  make_room({0});
  EXPECT_TRUE(*large);
  EXPECT_FALSE(*too_much);
}

TEST_F(AllocationQueue, ConnectionsGetTheirTurnsWhateverOthersAskFor) {
  queue = make(64, 0, 8);
  auto taken = take({16, 16, 16, 16});
  std::vector<answer_ptr> greedy;
  for (int i = 0; i < 4; ++i)
    greedy.push_back(ask({16}, true, of(1)));
  auto other = ask({16}, true, of(2));
  queue->free({taken[0]});
  EXPECT_TRUE(*greedy[0]);
  queue->free({taken[1]});
  EXPECT_TRUE(*other);
  EXPECT_FALSE(*greedy[1]);
}

TEST_F(AllocationQueue, ASmallRequestPassesHoweverManyLargeOnesAnotherConnectionHas) {
  queue = make(64, 0, 128);
  take({62, 1});
  hold(0);
  std::vector<answer_ptr> greedy;
  for (int i = 0; i < 40; ++i)
    greedy.push_back(ask({16}, true, of(1)));
  EXPECT_TRUE(*ask({1}, true, of(2))) << "there is space for it";
  EXPECT_EQ(wanted(), 16 * page);
  make_room({1});
  EXPECT_FALSE(*greedy[0]) << "one page may leave";
  auto small = ask({1}, true, of(2));
  EXPECT_EQ(wanted(), page);
  make_room({1});
  EXPECT_TRUE(*small);
  EXPECT_FALSE(*greedy[0]);
}

TEST_F(AllocationQueue, WhoeverBecomesTheFirstBecauseAnotherWasPassedIsServed) {
  queue = make(64, 0, 64);
  auto taken = take({11, 12, 12, 29});
  queue->free({taken[0], taken[2]});
  auto large = ask({20}, true, of(1));
  EXPECT_TRUE(*ask({11}, true, of(1)));
  auto other = ask({10}, true, of(2));
  EXPECT_FALSE(*other) << "of twenty, eleven passed it already";
  EXPECT_TRUE(*ask({2}, true, of(1)));
  EXPECT_TRUE(*other) << "it is first now that the first connection was charged for what passed, and fits";
  EXPECT_FALSE(*large);
}

TEST_F(AllocationQueue, WhatIsRefusedDoesNotCountAsPassing) {
  take({4, 2});
  hold(0), hold(1);
  auto large = ask({6});
  make_room({});
  auto impatient = ask({5}, false);
  ASSERT_TRUE(*impatient);
  EXPECT_EQ((*impatient)->failure.code, errc::no_space);
  EXPECT_TRUE(*ask({2})) << "six may pass";
  EXPECT_FALSE(*large);
}

// ---- extents that are freed after a failed round ----

TEST_F(AllocationQueue, RoomIsMadeAgainOnceSomethingIsFreed) {
  take({4});
  auto writing = ask({2});
  take({2});
  hold(0);
  auto large = ask({4});
  make_room({1});
  EXPECT_FALSE(*large) << "two may leave";
  queue->free((*writing)->extents);
  EXPECT_EQ(wanted(), 2 * page) << "with the two that are free they are enough";
  EXPECT_EQ(make_room({1}), (numbers{1}));
  EXPECT_TRUE(*large);
}

TEST_F(AllocationQueue, KeepsNothingOfARequestThatWasAnswered) {
  take({8});
  auto request = of(1);
  auto waiting = ask({2}, true, request);
  make_room({0});
  ASSERT_TRUE(*waiting);
  EXPECT_EQ(request.use_count(), 1) << "a check sees it as in progress until the next round";
}

TEST_F(AllocationQueue, RoomIsMadeAgainForWhatWasFreedDuringTheRound) {
  take({4});
  auto writing = ask({2});
  take({2});
  hold(0);
  auto large = ask({4});
  EXPECT_NE(wanted(), 0u);
  queue->free((*writing)->extents);
  make_room({1});
  EXPECT_FALSE(*large) << "the tier did not know";
  EXPECT_EQ(wanted(), 2 * page);
  make_room({1});
  EXPECT_TRUE(*large);
}

TEST_F(AllocationQueue, RoomIsMadeAgainOnceTheArenaGrows) {
  take({4, 4});
  hold(0);
  auto large = ask({6});
  make_room({1});
  EXPECT_FALSE(*large);
  queue->grow({2 * page, 0});
  EXPECT_EQ(wanted(), 4 * page);
  make_room({1});
  EXPECT_TRUE(*large);
}

TEST_F(AllocationQueue, WhatOnlyTheEndOfLeasesMakesFreeIsToldAtOnce) {
  auto ledger = std::make_shared<lease_ledger>();
  objects.charges(ledger);
  take({6, 1});
  auto account = ledger->open();
  auto leased = objects.probe({chain(0, 1), true, false}).places;
  auto lease = account->charge(std::make_shared<object_hold>(release_sink_ptr{}, leased));
  auto transfer = hold(1);
  auto large = ask({3}), small = ask({2});
  make_room({});
  ASSERT_TRUE(*large) << "six of eight are leased";
  EXPECT_EQ((*large)->failure.code, errc::no_space);
  EXPECT_NE((*large)->failure.text.find("only the end of leases can make 12288 bytes free"),
            std::string::npos)
      << (*large)->failure.text;
  make_room({});
  EXPECT_FALSE(*small) << "the transfer ends by itself";
  objects.release(transfer);
  queue->more_evictable();
  make_room({1});
  EXPECT_TRUE(*small);
}

TEST_F(AllocationQueue, WhatNothingButLeasesHoldsIsToldAtOnceHoweverItIsScattered) {
  auto ledger = std::make_shared<lease_ledger>();
  objects.charges(ledger);
  auto taken = take({3, 1, 3, 1});
  auto account = ledger->open();
  auto leased = objects.probe({chain(1, 1), true, false}).places;
  auto lease = account->charge(std::make_shared<object_hold>(release_sink_ptr{}, leased));
  auto large = ask({5});
  make_room({0, 2, 3});
  ASSERT_TRUE(*large);
  EXPECT_EQ((*large)->failure.code, errc::no_space);
}

TEST_F(AllocationQueue, AsksForTheBytesThatAreMissingAndOnlyOnceAtATime) {
  take({6});
  ask({4});
  EXPECT_EQ(wanted(), 2 * page);
  EXPECT_FALSE(queue->begin_round());
  ask({4});
  EXPECT_FALSE(queue->begin_round()); // the tier still owes an answer
  make_room({});
  queue->more_evictable();
  EXPECT_NE(wanted(), 0u);
}

TEST_F(AllocationQueue, RoomForSeveralThatWaitIsMadeAtOnce) {
  queue = make(64, 0, 8);
  take(std::vector<uint64_t>(64, 1));
  auto first = ask({1}), second = ask({1}), third = ask({1});
  EXPECT_EQ(wanted(), 3 * page);
  auto late = ask({1}); // the next round is for it
  EXPECT_EQ(make_room({0, 1, 2, 3, 4}), (numbers{0, 1, 2}));
  EXPECT_TRUE(*first && *second && *third);
  EXPECT_FALSE(*late);
  EXPECT_EQ(wanted(), page);
}

TEST_F(AllocationQueue, RoomForSeveralIsMadeAtOnceWhereFreeBytesFitNone) {
  queue = make(512, 0, 32, 64);        // 21 objects of 3 pages up to each boundary, and a page in front of it
  take(std::vector<uint64_t>(168, 3)); // 8 pages are free
  std::vector<answer_ptr> answers;
  for (int i = 0; i < 10; ++i)
    answers.push_back(ask({3}));
  EXPECT_EQ(wanted(), 30 * page);
  numbers order;
  for (uint64_t number = 0; number < 168; number += 2)
    order.push_back(number);
  EXPECT_EQ(make_room(order).size(), 10u);
  for (const auto& answer : answers)
    EXPECT_TRUE(*answer);
}

TEST_F(AllocationQueue, AtMostSixteenAreServedTogether) {
  queue = make(1024, 0, 64);
  take(std::vector<uint64_t>(1024, 1));
  for (int i = 0; i < 20; ++i)
    ask({1});
  EXPECT_EQ(wanted(), 16 * page);
}

TEST_F(AllocationQueue, WhenThereIsNoRoomForAllTheFirstHasIts) {
  queue = make(64, 0, 8);
  take(std::vector<uint64_t>(64, 1));
  auto first = ask({1}), second = ask({1});
  EXPECT_EQ(wanted(), 2 * page);
  EXPECT_EQ(make_room({7}), (numbers{7}));
  EXPECT_TRUE(*first);
  EXPECT_FALSE(*second);
}

TEST_F(AllocationQueue, RoomIsNotMadeTogetherForSeveralExtentsForMuchOrForAnotherInference) {
  queue = make(64, 0, 16);
  take(std::vector<uint64_t>(64, 1));
  auto several = ask({1, 1}), one = ask({1});
  EXPECT_EQ(wanted(), 2 * page);
  make_room({0, 1});
  EXPECT_TRUE(*several);
  for (int i = 0; i < 4; ++i)
    ask({1});
  EXPECT_EQ(wanted(), 4 * page); // a sixteenth of the arena
  make_room({2, 3, 4, 5});
  EXPECT_EQ(wanted(), page);
  make_room({6});
  EXPECT_EQ(queue->waiting(), 0u);
  auto of = context();
  of->inference = 7;
  ask({1});
  ask({1}, true, of);
  EXPECT_EQ(wanted(), page);
}

TEST_F(AllocationQueue, KeepsSomeBytesFreeAhead) {
  queue = make(8, 3 * page);
  EXPECT_EQ(wanted(), 0u);
  EXPECT_EQ(queue->room_bytes(), 5 * page);
  take({6});
  EXPECT_EQ(wanted(), page);
  EXPECT_EQ(queue->room_bytes(), 0u);
}

TEST_F(AllocationQueue, RefusesAtOnceWhenNothingMayLeaveAndTheRequestMayNotWait) {
  take({7});
  hold(0);
  auto impatient = ask({2}, false);
  EXPECT_FALSE(*impatient); // eviction has not been tried
  EXPECT_EQ(wanted(), page);
  make_room({});
  ASSERT_TRUE(*impatient);
  EXPECT_EQ((*impatient)->failure.code, errc::no_space);
  EXPECT_NE((*impatient)->failure.text.find("leases and transfers hold 28.0 KiB"), std::string::npos)
      << (*impatient)->failure.text;
  auto second = ask({2}, false);
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->failure.code, errc::no_space);
}

TEST_F(AllocationQueue, NobodyWhoMayNotWaitIsKeptBehindOneForWhomThereIsNoRoom) {
  auto taken = take({3});
  take({4});
  hold(0), hold(1);
  auto patient = ask({2});
  queue->free((*ask({1}))->extents); // it passed the first, so another may pass only once more
  EXPECT_EQ(wanted(), page);
  make_room({});
  auto impatient = ask({2}, false);
  ASSERT_TRUE(*impatient);
  EXPECT_EQ((*impatient)->failure.code, errc::no_space);
  auto fits = ask({1}, false);
  ASSERT_TRUE(*fits);
  EXPECT_EQ((*fits)->failure.code, errc::ok) << "it may pass";
  EXPECT_FALSE(*patient);
  queue->free(taken);
  EXPECT_TRUE(*patient);
}

TEST_F(AllocationQueue, APatientRequestWaitsUntilSomethingMayLeaveAgain) {
  take({7});
  auto patient = ask({2});
  make_room({});
  EXPECT_FALSE(*patient);
  EXPECT_EQ(wanted(), 0u); // asking again would be polling
  queue->more_evictable(); // a lease ended
  EXPECT_EQ(wanted(), page);
  make_room({0});
  EXPECT_TRUE(*patient);
}

TEST_F(AllocationQueue, ADeadlineWhileNothingMayLeaveIsNoSpaceAndNamesTheHolders) {
  take({8});
  hold(0);
  auto of = context();
  auto waiting = ask({2}, true, of);
  make_room({});
  of->ended = errc::deadline;
  queue->sweep();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::no_space);
  EXPECT_NE((*waiting)->failure.text.find("in 1 object "), std::string::npos) << (*waiting)->failure.text;
}

TEST_F(AllocationQueue, ADeadlineWhileRoomIsBeingMadeIsADeadline) {
  take({8});
  auto of = context();
  auto waiting = ask({2}, true, of);
  EXPECT_NE(wanted(), 0u);
  of->ended = errc::deadline;
  queue->sweep();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::deadline);
}

TEST_F(AllocationQueue, SweepEndsCancelledRequestsAnywhereInTheLineAndServesThoseBehind) {
  take({6});
  auto of = context();
  auto large = ask({3}, true, of);
  auto passed = ask({2});
  queue->free((*passed)->extents);
  auto small = ask({2});
  EXPECT_FALSE(*small);
  of->ended = errc::cancelled;
  queue->sweep();
  ASSERT_TRUE(*large);
  EXPECT_EQ((*large)->failure.code, errc::cancelled);
  ASSERT_TRUE(*small);
  EXPECT_EQ((*small)->failure.code, errc::ok);
}

TEST_F(AllocationQueue, ARequestThatHasEndedGetsNoMemory) {
  auto answer = ask({1}, true, ended(errc::cancelled));
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failure.code, errc::cancelled);
  EXPECT_EQ(free_bytes(), 8 * page);
}

TEST_F(AllocationQueue, TheLineIsBounded) {
  take({8});
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(*ask({1}));
  auto one_more = ask({1});
  ASSERT_TRUE(*one_more);
  EXPECT_EQ((*one_more)->failure.code, errc::busy);
  EXPECT_EQ(queue->waiting(), 4u);
}

TEST_F(AllocationQueue, OneConnectionLeavesPlacesForOthers) {
  take({8});
  auto waits = [&](uint64_t connection) { return !*ask({1}, true, of(connection)); };
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(waits(1));
  EXPECT_FALSE(waits(1));
  EXPECT_TRUE(waits(2) && waits(2));
  EXPECT_FALSE(waits(2)) << "two places are left";
  EXPECT_NE(wanted(), 0u);
  EXPECT_TRUE(waits(3)) << "while the space is lent, too";
  EXPECT_FALSE(waits(3));
  EXPECT_TRUE(waits(4));
  EXPECT_FALSE(waits(5)) << "eight wait";
  make_room({0});
  EXPECT_EQ(queue->waiting(), 0u);
}

TEST_F(AllocationQueue, WhatCanNeverFitIsRefusedAndNotQueued) {
  auto too_much = ask({5, 5});
  ASSERT_TRUE(*too_much);
  EXPECT_EQ((*too_much)->failure.code, errc::no_space);
  auto too_large = ask({9});
  ASSERT_TRUE(*too_large);
  EXPECT_EQ((*too_large)->failure.code, errc::bad_request);
  auto nothing = ask({0});
  ASSERT_TRUE(*nothing);
  EXPECT_EQ((*nothing)->failure.code, errc::bad_request);
  EXPECT_EQ(queue->waiting(), 0u);
}

// ---- while a round has the space ----

TEST_F(AllocationQueue, KeepsWhatArrivesWhileTheSpaceIsLentInItsOrder) {
  auto taken = take({6, 1});
  auto first = ask({4});
  ASSERT_EQ(wanted(), 3 * page);
  auto modest = ask({1}, false), second = ask({2}), third = ask({1});
  queue->free({taken[1]});
  EXPECT_FALSE(*modest) << "it would fit, and has its answer when the space is back";
  EXPECT_EQ(queue->waiting(), 4u);
  EXPECT_EQ(queue->usage().free_bytes, page) << "as it was";
  make_room({0});
  EXPECT_TRUE(*first && *modest && *second && *third);
  EXPECT_EQ((*third)->failure.code, errc::ok);
  EXPECT_EQ(free_bytes(), 0u);
}

TEST_F(AllocationQueue, TheLineIsBoundedWhileTheSpaceIsLent) {
  take({8});
  auto first = ask({1});
  ASSERT_NE(wanted(), 0u);
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(*ask({1}));
  auto one_more = ask({1});
  ASSERT_TRUE(*one_more);
  EXPECT_EQ((*one_more)->failure.code, errc::busy);
  make_room({0});
  EXPECT_EQ(queue->waiting(), 0u);
}

TEST_F(AllocationQueue, ASweepWhileTheSpaceIsLentEndsThoseWhoCameSince) {
  take({8});
  auto of = context();
  auto first = ask({1});
  ASSERT_NE(wanted(), 0u);
  auto patient = ask({8}), ending = ask({1}, true, of);
  of->ended = errc::cancelled;
  queue->sweep();
  make_room({0});
  EXPECT_TRUE(*first);
  ASSERT_TRUE(*ending);
  EXPECT_EQ((*ending)->failure.code, errc::cancelled);
  EXPECT_FALSE(*patient);
}

TEST_F(AllocationQueue, LendsNothingForRoomAheadOfNeed) {
  queue = make(8, 3 * page);
  auto taken = take({5, 1});
  ASSERT_EQ(wanted(), page);
  EXPECT_TRUE(*ask({2})) << "there is space for it";
  auto waiting = ask({1});
  EXPECT_FALSE(*waiting);
  make_room({1});
  EXPECT_TRUE(*waiting);
}

// ---- an arena that changes its size ----

TEST_F(AllocationQueue, ServesThoseWhoWaitedWhenTheArenaGrows) {
  take({8});
  auto waits = ask({4});
  EXPECT_FALSE(*waits);
  queue->grow({4 * page, 0});
  ASSERT_TRUE(*waits);
  EXPECT_EQ((*waits)->extents[0].offset, 8 * page);
}

TEST_F(AllocationQueue, GrowsAndShrinksWhenTheSpaceIsBack) {
  take({4, 4});
  auto waits = ask({8});
  ASSERT_EQ(wanted(), 8 * page);
  std::vector<errc> told;
  queue->grow({8 * page, 0});
  queue->retire({4 * page, 4 * page},
                [&](const retire_answer& answer) { told.push_back(answer.failure.code); });
  EXPECT_EQ(queue->usage().capacity_bytes, 8 * page);
  make_room({});
  ASSERT_TRUE(*waits);
  EXPECT_EQ((*waits)->extents[0].offset, 8 * page);
  EXPECT_TRUE(told.empty()) << "an object lies there";
  queue->free({{4 * page, 4 * page}});
  EXPECT_EQ(told, (std::vector{errc::ok}));
}

TEST_F(AllocationQueue, ToldWhenNothingIsLeftInWhatRetires) {
  auto taken = take({2, 2, 2, 2});
  int told = 0;
  queue->retire({4 * page, 4 * page}, [&](const retire_answer& answer) {
    EXPECT_EQ(answer.failure.code, errc::ok);
    ++told;
  });
  queue->free({taken[0], taken[2]});
  EXPECT_EQ(told, 0);
  queue->free({taken[3]});
  EXPECT_EQ(told, 1);
  queue->free({taken[1]});
  EXPECT_EQ(told, 1);
  EXPECT_EQ(queue->usage().capacity_bytes, 4 * page);
}

TEST_F(AllocationQueue, ToldAtOnceOfWhatIsEmptyOrNoSegment) {
  std::vector<errc> told;
  auto tell = [&](const retire_answer& answer) { told.push_back(answer.failure.code); };
  queue->retire({4 * page, 4 * page}, tell);
  queue->retire({4 * page, 4 * page}, tell);
  EXPECT_EQ(told, (std::vector{errc::ok, errc::bad_request}));
}

TEST_F(AllocationQueue, NobodyWaitsForWhatASmallerArenaCanNeverHold) {
  auto taken = take({4, 2, 2});
  auto large = ask({3, 3}), wide = ask({5}), fits = ask({2, 2});
  queue->retire({4 * page, 4 * page}, [](const retire_answer&) {});
  ASSERT_TRUE(*wide);
  EXPECT_EQ((*wide)->failure.code, errc::bad_request);
  EXPECT_FALSE(*large) << "as long as objects lie there, they count";
  queue->free({taken[1], taken[2]});
  ASSERT_TRUE(*large);
  EXPECT_EQ((*large)->failure.code, errc::no_space);
  EXPECT_FALSE(*fits);
  queue->free({taken[0]});
  EXPECT_TRUE(*fits);
}

TEST_F(AllocationQueue, KeepsTheShareThatItFreesAhead) {
  queue = make(8, 4 * page);
  take({4, 2, 2});
  EXPECT_EQ(wanted(), 4 * page);
  make_room({1, 2});
  queue->grow({8 * page, 0});
  EXPECT_EQ(wanted(), 0u) << "12 of 16 are free";
  queue->retire({4 * page, 12 * page}, [](const retire_answer&) {});
  EXPECT_EQ(wanted(), 2 * page) << "half of what is left";
}
