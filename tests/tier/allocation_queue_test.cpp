#include "tier/allocation_queue.hpp"
#include "tier/victim_choice.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t page = 4096;

struct AllocationQueue : ::testing::Test {
  std::unique_ptr<allocation_queue> queue = make(8);

  static std::unique_ptr<allocation_queue> make(uint64_t pages, uint64_t ahead = 0, size_t waiting_max = 4) {
    auto space = make_allocator("free_list", {.capacity_bytes = pages * page, .boundary_bytes = 0});
    return std::make_unique<allocation_queue>(std::move(*space), ahead, waiting_max);
  }

  using answer_ptr = std::shared_ptr<std::optional<allocate_answer>>;
  answer_ptr ask(std::vector<uint64_t> pages, bool may_wait = true, context_ptr of = nullptr) {
    auto answer = std::make_shared<std::optional<allocate_answer>>();
    allocate_request request;
    for (uint64_t count : pages)
      request.sizes.push_back(count * page);
    request.may_wait = may_wait;
    request.context = std::move(of);
    queue->allocate(request, [answer](allocate_answer value) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = std::move(value);
    });
    return answer;
  }
  std::vector<extent> take(std::vector<uint64_t> pages) {
    auto answer = ask(std::move(pages));
    EXPECT_TRUE(answer->has_value() && (*answer)->failure.code == errc::ok);
    return (*answer)->extents;
  }
  /// Bytes that the queue asks its tier for; 0: it asks for nothing.
  uint64_t wanted() {
    auto request = queue->room_wanted();
    return request ? request->bytes : 0;
  }
  void made(std::vector<extent> extents, bool exhausted = false, std::string holders = "",
            bool for_one = false) {
    queue->room_made({std::move(extents), exhausted, std::move(holders), for_one});
  }
  uint64_t free_bytes() { return queue->space().usage().free_bytes; }
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

TEST_F(AllocationQueue, ServesInTheOrderOfArrivalEvenIfALaterOneWouldFit) {
  auto taken = take({6});
  auto large = ask({4});
  auto small = ask({1});
  EXPECT_FALSE(*large);
  EXPECT_FALSE(*small); // or a stream of small ones would starve the large one
  queue->free(taken);
  EXPECT_TRUE(*large);
  EXPECT_TRUE(*small);
}

TEST_F(AllocationQueue, AsksForTheBytesThatAreMissingAndOnlyOnceAtATime) {
  take({6});
  ask({4});
  EXPECT_EQ(wanted(), 2 * page);
  EXPECT_EQ(wanted(), 0u);
  ask({4});
  EXPECT_FALSE(queue->room_wanted()); // the tier still owes an answer
  made({});
  EXPECT_NE(wanted(), 0u);
}

TEST_F(AllocationQueue, AsksWhichVictimsHelpWhenBytesAreFreeInTooManyRuns) {
  auto taken = take({1, 1, 1, 1, 1, 1, 1, 1});
  queue->free(std::vector{taken[0], taken[2]});
  auto waiting = ask({2});
  EXPECT_FALSE(*waiting);
  EXPECT_EQ(queue->room_wanted(),
            (room_request{0, 2 * page})); // two pages are free, but they are no neighbours
  auto choice = queue->choose({taken[6], taken[4], taken[3], taken[1]});
  EXPECT_TRUE(choice.waits);
  EXPECT_EQ(choice.chosen, (std::vector<size_t>{2})); // beside the free page at 2
  made({taken[3]});
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::ok);
  EXPECT_FALSE(queue->room_wanted());
}

TEST_F(AllocationQueue, ChoosesNothingWhileTheCandidatesAreNotEnoughAndNothingIsChanged) {
  auto taken = take({1, 1, 1, 1, 1, 1, 1, 1});
  auto waiting = ask({3});
  EXPECT_EQ(queue->room_wanted(), (room_request{3 * page, 3 * page}));
  auto choice = queue->choose({taken[0], taken[2], taken[4]});
  EXPECT_TRUE(choice.waits);
  EXPECT_TRUE(choice.chosen.empty());
  EXPECT_EQ(free_bytes(), 0u);
  EXPECT_EQ(queue->choose({taken[0], taken[2], taken[4], taken[6], taken[5]}).chosen,
            (std::vector<size_t>{2, 3, 4}));
}

TEST_F(AllocationQueue, RoomForSeveralThatWaitIsMadeAtOnce) {
  queue = make(64, 0, 8);
  auto taken = take(std::vector<uint64_t>(64, 1));
  auto first = ask({1}), second = ask({1}), third = ask({1});
  EXPECT_EQ(queue->room_wanted(), (room_request{3 * page, 3 * page}));
  auto late = ask({1}); // the next question is for it
  EXPECT_EQ(queue->choose({taken.begin(), taken.begin() + 5}).chosen, (std::vector<size_t>{0, 1, 2}));
  made({taken.begin(), taken.begin() + 3});
  EXPECT_TRUE(*first && *second && *third);
  EXPECT_FALSE(*late);
  EXPECT_EQ(wanted(), page);
}

TEST_F(AllocationQueue, WhenThereIsNoRoomForAllTheFirstHasIts) {
  queue = make(64, 0, 8);
  auto taken = take(std::vector<uint64_t>(64, 1));
  auto first = ask({1}), second = ask({1});
  EXPECT_EQ(wanted(), 2 * page);
  auto choice = queue->choose({taken[7]});
  EXPECT_EQ(choice.chosen, (std::vector<size_t>{0}));
  made({taken[7]});
  EXPECT_TRUE(*first);
  EXPECT_FALSE(*second);
}

TEST_F(AllocationQueue, RoomIsNotMadeTogetherForSeveralExtentsForMuchOrForAnotherInference) {
  queue = make(64, 0, 8);
  auto taken = take(std::vector<uint64_t>(64, 1));
  auto several = ask({1, 1}), one = ask({1});
  EXPECT_EQ(wanted(), 2 * page);
  made({taken.begin(), taken.begin() + 2});
  EXPECT_TRUE(*several);
  for (int i = 0; i < 4; ++i)
    ask({1});
  EXPECT_EQ(wanted(), 4 * page); // a sixteenth of the arena
  made({taken.begin() + 2, taken.begin() + 7});
  EXPECT_EQ(queue->waiting(), 0u);
  auto of = context();
  of->inference = 7;
  ask({1});
  ask({1}, true, of);
  EXPECT_EQ(wanted(), page);
}

TEST_F(AllocationQueue, SaysSoWhenNobodyNeedsTheVictimsAnyMore) {
  auto taken = take({8});
  auto ending = context();
  ask({2}, true, ending);
  EXPECT_NE(wanted(), 0u);
  ending->ended = errc::cancelled;
  EXPECT_FALSE(queue->choose(taken).waits);
}

TEST_F(AllocationQueue, ThatAllVictimsAreNotEnoughForOneIsNotHeldAgainstTheNext) {
  auto taken = take({1, 1, 1, 1, 1, 1, 1, 1});
  auto ending = context();
  auto large = ask({4}, true, ending);
  EXPECT_NE(wanted(), 0u);
  EXPECT_TRUE(queue->choose({taken[0], taken[2]}).chosen.empty());
  made({}, true, "leases", true);
  EXPECT_FALSE(queue->room_wanted()); // until something else may leave
  ending->ended = errc::cancelled;
  queue->sweep();
  EXPECT_TRUE(*large);
  auto small = ask({1});
  EXPECT_EQ(wanted(), page);
  EXPECT_EQ(queue->choose({taken[0], taken[2]}).chosen, (std::vector<size_t>{0}));
  made({taken[0]});
  EXPECT_TRUE(*small);
}

TEST_F(AllocationQueue, ARequestThatMayNotEvictTakesWhatIsFreeAndLetsOthersPass) {
  auto taken = take({7});
  auto modest = std::make_shared<std::optional<allocate_answer>>();
  queue->allocate({{2 * page}, true, nullptr, false},
                  [modest](allocate_answer value) { *modest = std::move(value); });
  EXPECT_FALSE(*modest);
  EXPECT_FALSE(queue->room_wanted()); // for nobody is evicted
  EXPECT_TRUE(*ask({1}));
  auto evicting = ask({1});
  EXPECT_EQ(wanted(), page);
  made(taken);
  EXPECT_TRUE(*evicting);
  ASSERT_TRUE(*modest);
  EXPECT_EQ((*modest)->failure.code, errc::ok);
}

TEST_F(AllocationQueue, ARequestThatMayNeitherEvictNorWaitIsRefusedAtOnce) {
  take({7});
  std::optional<allocate_answer> answer;
  queue->allocate({{2 * page}, false, nullptr, false},
                  [&](allocate_answer value) { answer = std::move(value); });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->failure.code, errc::no_space);
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
  auto impatient = ask({2}, false);
  EXPECT_FALSE(*impatient); // eviction has not been tried
  EXPECT_EQ(wanted(), page);
  made({}, true, "leases hold it all");
  ASSERT_TRUE(*impatient);
  EXPECT_EQ((*impatient)->failure.code, errc::no_space);
  EXPECT_NE((*impatient)->failure.text.find("leases hold it all"), std::string::npos);
  auto second = ask({2}, false);
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->failure.code, errc::no_space);
}

TEST_F(AllocationQueue, APatientRequestWaitsUntilSomethingMayLeaveAgain) {
  auto taken = take({7});
  auto patient = ask({2});
  queue->room_wanted();
  made({}, true, "leases");
  EXPECT_FALSE(*patient);
  EXPECT_EQ(wanted(), 0u); // asking again would be polling
  made({});                // a lease ended
  EXPECT_EQ(wanted(), page);
  made(taken);
  EXPECT_TRUE(*patient);
}

TEST_F(AllocationQueue, ADeadlineWhileNothingMayLeaveIsNoSpaceAndNamesTheHolders) {
  take({8});
  auto of = context();
  auto waiting = ask({2}, true, of);
  queue->room_wanted();
  made({}, true, "leases hold it all");
  of->ended = errc::deadline;
  queue->sweep();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::no_space);
  EXPECT_NE((*waiting)->failure.text.find("leases hold it all"), std::string::npos);
}

TEST_F(AllocationQueue, ADeadlineWhileRoomIsBeingMadeIsADeadline) {
  take({8});
  auto of = context();
  auto waiting = ask({2}, true, of);
  of->ended = errc::deadline;
  queue->sweep();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::deadline);
}

TEST_F(AllocationQueue, SweepEndsCancelledRequestsAnywhereInTheLineAndServesThoseBehind) {
  take({6});
  auto of = context();
  auto large = ask({4}, true, of);
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

TEST(VictimChoice, AVictimTakesAlongWhatWasNamedBelowIt) {
  // Two chains, named from their ends: c over b over a, and y over x.
  entry_key a{1, 1}, b{1, 2}, c{1, 3}, x{2, 1}, y{2, 2}, root{3, 0};
  victim_answer named;
  named.victims = {c, y, b, x, a};
  named.above = {b, x, a, root, {}}; // `root` was not named
  EXPECT_EQ(with_descendants(named, {2}), (std::vector<entry_key>{c, b}));
  EXPECT_EQ(with_descendants(named, {4}), (std::vector<entry_key>{c, b, a}));
  EXPECT_EQ(with_descendants(named, {1}), (std::vector<entry_key>{y}));
  EXPECT_EQ(with_descendants(named, {0, 3}), (std::vector<entry_key>{c, y, x}));
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
  EXPECT_EQ(queue->space().usage().capacity_bytes, 4 * page);
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
  made({taken[1], taken[2]});
  ASSERT_TRUE(*large);
  EXPECT_EQ((*large)->failure.code, errc::no_space);
  EXPECT_FALSE(*fits);
  made({taken[0]});
  EXPECT_TRUE(*fits);
}

TEST_F(AllocationQueue, KeepsTheShareThatItFreesAhead) {
  queue = make(8, 4 * page);
  auto taken = take({4, 2, 2});
  EXPECT_EQ(wanted(), 4 * page);
  made({taken[1], taken[2]});
  queue->grow({8 * page, 0});
  EXPECT_EQ(wanted(), 0u) << "12 of 16 are free";
  queue->retire({4 * page, 12 * page}, [](const retire_answer&) {});
  EXPECT_EQ(wanted(), 2 * page) << "half of what is left";
}
