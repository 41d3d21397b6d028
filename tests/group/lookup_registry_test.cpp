#include "group/lookup_registry.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <map>

using namespace terrace;
using namespace terrace::test;

namespace lookup_registry_test {

lookup_id id_of(uint32_t number) {
  lookup_id id;
  std::memcpy(id.bytes.data(), &number, sizeof number);
  return id;
}

std::shared_ptr<lookup_outcome> found(uint32_t chunks, const lease_ptr& held = nullptr) {
  auto outcome = std::make_shared<lookup_outcome>();
  outcome->plan.found_chunks = chunks;
  outcome->plan.chunk_tiers.resize(chunks);
  outcome->leased = held != nullptr;
  outcome->held = held;
  return outcome;
}

struct LookupRegistry : ::testing::Test {
  lookup_registry lookups;
  std::map<uint32_t, context_ptr> begun; ///< contexts of the requests that look up

  result<void> begin(uint32_t id, context_ptr who = context()) {
    auto ok = lookups.begin(id_of(id), who);
    if (ok)
      begun[id] = who;
    return ok;
  }
  void finish(uint32_t id, lookup_outcome_ptr outcome) {
    lookups.finish(id_of(id), begun[id], std::move(outcome));
  }

  struct heard {
    int times = 0;
    errc code = errc::ok;
    uint32_t chunks = 0;
  };
  std::shared_ptr<heard> await(uint32_t id, context_ptr who = context()) {
    auto said = std::make_shared<heard>();
    lookups.await(id_of(id), std::move(who), [said](const error& failure, const lookup_outcome_ptr& outcome) {
      ++said->times;
      said->code = failure.code;
      if (outcome)
        said->chunks = outcome->plan.found_chunks;
    });
    return said;
  }
};

TEST_F(LookupRegistry, AllWhoWaitHearTheAnswerOnce) {
  ASSERT_TRUE(begin(1));
  auto first = await(1);
  auto second = await(1);
  EXPECT_EQ(first->times, 0);
  finish(1, found(5));
  finish(1, found(9));
  for (const auto& who : {first, second}) {
    EXPECT_EQ(who->times, 1);
    EXPECT_EQ(who->code, errc::ok);
    EXPECT_EQ(who->chunks, 5u);
  }
}

TEST_F(LookupRegistry, WhoAsksLaterHearsItAtOnce) {
  ASSERT_TRUE(begin(1));
  finish(1, found(0));
  EXPECT_EQ(await(1)->times, 1);
}

TEST_F(LookupRegistry, WhoAsksBeforeItBeginsWaitsForIt) {
  auto early = await(1);
  ASSERT_TRUE(begin(1));
  EXPECT_EQ(early->times, 0);
  finish(1, found(3));
  EXPECT_EQ(early->chunks, 3u);
}

TEST_F(LookupRegistry, AFailureIsHeardByAll) {
  ASSERT_TRUE(begin(1));
  auto early = await(1);
  auto refused = std::make_shared<lookup_outcome>();
  refused->failure = {errc::gone, "refused"};
  finish(1, refused);
  EXPECT_EQ(early->code, errc::gone);
  EXPECT_EQ(await(1)->code, errc::gone);
}

TEST_F(LookupRegistry, AnIdIsUsedOnceAtATimeAndAgainAfterItsAnswer) {
  ASSERT_TRUE(begin(1));
  auto again = begin(1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, errc::bad_request);
  finish(1, found(1));
  ASSERT_TRUE(begin(1));
  auto second = await(1);
  EXPECT_EQ(second->times, 0) << "what came of the first is history";
  finish(1, found(2));
  EXPECT_EQ(second->chunks, 2u);
}

TEST_F(LookupRegistry, WhoseBeginWasRefusedDoesNotAnswerForTheOther) {
  auto refused = context();
  ASSERT_TRUE(begin(1));
  ASSERT_FALSE(lookups.begin(id_of(1), refused));
  auto waits = await(1);
  lookups.finish(id_of(1), refused, found(9));
  EXPECT_EQ(waits->times, 0);
  finish(1, found(2));
  EXPECT_EQ(waits->chunks, 2u);
}

TEST_F(LookupRegistry, AnAnswerWhoseLeaseHasEndedIsGone) {
  ASSERT_TRUE(begin(1));
  auto held = std::make_shared<lease>();
  finish(1, found(4, held));
  EXPECT_EQ(await(1)->code, errc::ok);
  held.reset();
  EXPECT_EQ(await(1)->code, errc::gone);
}

TEST_F(LookupRegistry, CancellingOneUnderWayEndsItsRequest) {
  auto looks_up = context();
  ASSERT_TRUE(begin(1, looks_up));
  EXPECT_TRUE(lookups.cancel(id_of(1)));
  EXPECT_EQ(looks_up->ended, errc::cancelled);
  EXPECT_FALSE(lookups.cancel(id_of(1))) << "it has ended already";
}

TEST_F(LookupRegistry, CancellingOneThatWasAnsweredEndsItsLeaseOnce) {
  ASSERT_TRUE(begin(1));
  auto held = std::make_shared<lease>();
  auto outcome = found(4, held);
  int ended = 0;
  outcome->end_lease = [&] { ++ended; };
  finish(1, outcome);
  EXPECT_TRUE(lookups.cancel(id_of(1)));
  EXPECT_FALSE(lookups.cancel(id_of(1)));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(await(1)->code, errc::gone);
}

TEST_F(LookupRegistry, ThereIsNothingToCancelOfAMissAnUnknownOneOrOneThatIsAwaited) {
  EXPECT_FALSE(lookups.cancel(id_of(1)));
  await(1);
  EXPECT_FALSE(lookups.cancel(id_of(1)));
  ASSERT_TRUE(begin(1));
  finish(1, found(0));
  EXPECT_FALSE(lookups.cancel(id_of(1)));
}

TEST_F(LookupRegistry, WhoWaitsNoLongerIsToldWhyAndForgotten) {
  auto ending = context();
  auto first = await(1, ending);
  auto second = await(1);
  lookups.sweep();
  EXPECT_EQ(first->times, 0);
  ending->ended = errc::deadline;
  lookups.sweep();
  EXPECT_EQ(first->code, errc::deadline);
  EXPECT_EQ(second->times, 0);
  EXPECT_EQ(lookups.size(), 1u);
  auto other = context();
  await(2, other);
  other->ended = errc::cancelled;
  lookups.sweep();
  EXPECT_EQ(lookups.size(), 1u);
}

TEST_F(LookupRegistry, TheOldestAnswersAreForgotten) {
  for (uint32_t n = 0; n <= lookup_registry::answered_max; ++n) {
    ASSERT_TRUE(begin(n));
    finish(n, found(1));
  }
  EXPECT_EQ(lookups.size(), lookup_registry::answered_max);
  EXPECT_EQ(await(0)->times, 0); // as if the lookup had never begun
  EXPECT_EQ(await(1)->times, 1);
}

TEST_F(LookupRegistry, LongAnswersAreForgottenSooner) {
  constexpr uint32_t chunks = 1 << 20;
  for (uint32_t n = 0; n <= lookup_registry::answered_chunks_max / chunks; ++n) {
    ASSERT_TRUE(begin(n));
    finish(n, found(chunks));
  }
  EXPECT_EQ(await(0)->times, 0);
  EXPECT_EQ(await(1)->times, 1);
}

TEST_F(LookupRegistry, ALookupUnderWayIsNeverForgotten) {
  ASSERT_TRUE(begin(1'000'000));
  for (int round = 0; round < 3; ++round)
    for (uint32_t n = 0; n < lookup_registry::answered_max; ++n) {
      ASSERT_TRUE(begin(n)); // an id may be used again, too
      finish(n, found(1));
    }
  EXPECT_LE(lookups.size(), lookup_registry::answered_max + 1);
  finish(1'000'000, found(7));
  EXPECT_EQ(await(1'000'000)->chunks, 7u);
}

/// A check asks how many requests are in progress.
TEST_F(LookupRegistry, KeepsNoRequestThatIsAnswered) {
  auto who = context(), waits = context();
  std::weak_ptr<request_context> lookup = who, waiter = waits;
  ASSERT_TRUE(lookups.begin(id_of(1), who));
  await(1, std::exchange(waits, nullptr));
  lookups.finish(id_of(1), std::exchange(who, nullptr), found(3));
  EXPECT_TRUE(lookup.expired());
  EXPECT_TRUE(waiter.expired());
  EXPECT_EQ(await(1)->chunks, 3U);
}

} // namespace lookup_registry_test
