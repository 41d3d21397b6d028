#include "connection/request_table.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace terrace;
using namespace std::chrono_literals;
using protocol::kind;

namespace request_table_test {

struct RequestTable : testing::Test {
  request_table table{connection_id{7}, {.requests = 2, .bytes = 100, .deadline = 1000ms}};
  request_table::clock::time_point now{};

  context_ptr begin(request_id id, uint64_t bytes = 10) { return table.begin(id, kind::store, bytes, now); }
};

TEST_F(RequestTable, ARequestKnowsWhoseItIs) {
  auto context = begin(5);
  EXPECT_EQ(context->connection, connection_id{7});
  EXPECT_EQ(context->request, 5u);
  EXPECT_TRUE(context->live());
  EXPECT_TRUE(table.contains(5));
  EXPECT_FALSE(table.contains(6));
}

TEST_F(RequestTable, CreditIsUsedUpByNumberAndComesBackWhenTheAnswerIsSent) {
  auto first = begin(1);
  EXPECT_TRUE(table.has_credit());
  begin(2);
  EXPECT_FALSE(table.has_credit());
  table.answer(1, first, now);
  EXPECT_FALSE(table.has_credit()) << "the client has not read it yet";
  table.sent(1);
  EXPECT_TRUE(table.has_credit());
  EXPECT_EQ(table.size(), 1u);
}

TEST_F(RequestTable, WhatARequestIsChargedUsesUpCreditUntilItsAnswerIsSent) {
  auto first = begin(1, 10);
  table.charge(1, 89);
  EXPECT_TRUE(table.has_credit());
  table.charge(1, 1);
  EXPECT_FALSE(table.has_credit());
  table.charge(2, 1'000); // request 2 is not in flight
  EXPECT_EQ(table.bytes(), 100u);
  table.answer(1, first, now);
  EXPECT_FALSE(table.has_credit());
  table.sent(1);
  EXPECT_TRUE(table.has_credit());
  EXPECT_EQ(table.bytes(), 0u);
}

TEST_F(RequestTable, ChargesAreCountedAgainstWhatWasExpectedFirst) {
  begin(1, 10);
  table.expect(1, 60);
  EXPECT_EQ(table.bytes(), 70u);
  table.charge(1, 50);
  EXPECT_EQ(table.bytes(), 70u);
  table.charge(1, 30);
  EXPECT_EQ(table.bytes(), 90u);
  table.expect(1, 400);
  table.charge(1, 100);
  table.settle(1);
  EXPECT_EQ(table.bytes(), 190u);
  table.expect(2, 1'000); // request 2 is not in flight
  table.settle(2);
  table.sent(1);
  EXPECT_EQ(table.bytes(), 0u);
}

TEST_F(RequestTable, WhatIsCountedApartIsNotCountedWithTheFrames) {
  auto first = begin(1, 10);
  table.expect(1, 60);
  EXPECT_EQ(table.group_bytes(), 10u);
  table.charge(1, 80, true);
  EXPECT_EQ(table.bytes(), 90u);
  EXPECT_EQ(table.group_bytes(), 10u);
  table.charge(1, 5);
  EXPECT_EQ(table.group_bytes(), 15u);
  table.took_objects(1, 80);
  EXPECT_EQ(table.objects_taken(), 80u);
  EXPECT_EQ(table.return_objects(1), 80u);
  EXPECT_EQ(table.return_objects(1), 0u);
  EXPECT_EQ(table.objects_taken(), 0u);
  table.sent(1);
  EXPECT_EQ(table.bytes(), 0u);
  EXPECT_EQ(table.group_bytes(), 0u);
}

TEST_F(RequestTable, WithoutCreditAFewRequestsThatGiveSomethingBackMayBegin) {
  begin(1);
  begin(2);
  EXPECT_FALSE(table.may_begin(kind::store, 10));
  EXPECT_FALSE(table.may_begin(kind::status, 10));
  for (kind verb : {kind::cancel, kind::release, kind::abort, kind::unregister_region, kind::end_inference})
    EXPECT_TRUE(table.may_begin(verb, 10));
  EXPECT_FALSE(table.may_begin(kind::cancel, protocol::giving_back_bytes_max + 1));
  for (request_id id = 3; id < 3 + protocol::giving_back_requests_max; ++id)
    begin(id);
  EXPECT_FALSE(table.may_begin(kind::cancel, 10));
}

TEST_F(RequestTable, ADeadlineIsAtMostTheLongestOne) {
  request_table short_ones{connection_id{7},
                           {.requests = 2, .bytes = 100, .deadline = 10ms, .deadline_max = 50ms}};
  short_ones.begin(1, kind::store, 10, now);
  EXPECT_EQ(short_ones.set_deadline(1, 40ms), now + 40ms);
  EXPECT_EQ(short_ones.set_deadline(1, 1h), now + 50ms);
}

TEST_F(RequestTable, CreditIsUsedUpByBytes) {
  begin(1, 100);
  EXPECT_FALSE(table.has_credit());
  table.sent(1);
  EXPECT_TRUE(table.has_credit());
  begin(2, 99);
  EXPECT_TRUE(table.has_credit());
}

TEST_F(RequestTable, WhatWasNeverInFlightGivesNoCredit) {
  begin(1, 60);
  table.sent(9);
  EXPECT_EQ(table.size(), 1u);
}

TEST_F(RequestTable, AnAnswerTellsHowLongItTookAndCountsOnce) {
  auto context = begin(1);
  now += 30ms;
  EXPECT_EQ(table.answer(1, context, now), 30ms);
  EXPECT_FALSE(table.answer(1, context, now));
  EXPECT_FALSE(table.answer(2, context, now));
}

TEST_F(RequestTable, AnAnswerToAnEarlierRequestWithTheSameIdIsDropped) {
  auto before = begin(1);
  table.answer(1, before, now);
  table.sent(1);
  auto after = begin(1);
  EXPECT_FALSE(table.answer(1, before, now));
  EXPECT_TRUE(table.answer(1, after, now));
}

TEST_F(RequestTable, ACancelEndsARequestOnce) {
  auto context = begin(1);
  EXPECT_EQ(table.cancel(1, errc::cancelled), request_table::cancelled::now);
  EXPECT_EQ(context->ended.load(), errc::cancelled);
  EXPECT_EQ(table.cancel(1, errc::cancelled), request_table::cancelled::before);
  EXPECT_TRUE(table.answer(1, context, now)) << "it is still answered";
  EXPECT_EQ(table.cancel(1, errc::cancelled), request_table::cancelled::unknown);
  EXPECT_EQ(table.cancel(2, errc::cancelled), request_table::cancelled::unknown);
}

TEST_F(RequestTable, DeadlinesEndWhatHasNoAnswerYet) {
  auto slow = begin(1);
  now += 400ms;
  auto answered = begin(2);
  table.answer(2, answered, now);

  now += 500ms;
  auto early = table.expire(now);
  EXPECT_FALSE(early.any);
  EXPECT_EQ(early.next, now + 100ms);

  now += 600ms;
  auto late = table.expire(now);
  EXPECT_TRUE(late.any);
  EXPECT_EQ(late.next, request_table::clock::time_point::max());
  EXPECT_EQ(slow->ended.load(), errc::deadline);
  EXPECT_TRUE(answered->live());
  EXPECT_FALSE(table.expire(now).any) << "once each";
}

TEST_F(RequestTable, ADeadlineThatARequestStatesCountsFromItsArrival) {
  auto context = begin(1);
  now += 50ms;
  EXPECT_EQ(table.set_deadline(1, 80ms), now + 30ms);
  EXPECT_FALSE(table.set_deadline(2, 80ms));
  now += 30ms;
  EXPECT_TRUE(table.expire(now).any);
  EXPECT_EQ(context->ended.load(), errc::deadline);
}

TEST_F(RequestTable, APartEndsBeforeItsRequest) {
  auto whole = begin(1);
  auto part = std::make_shared<request_context>();
  EXPECT_EQ(table.set_part(1, part, now + 200ms), now + 800ms) << "three quarters of 800 ms";
  auto found = table.expire(now + 799ms);
  EXPECT_FALSE(found.any);
  EXPECT_EQ(found.next, now + 800ms);
  found = table.expire(now + 800ms);
  EXPECT_TRUE(found.any);
  EXPECT_EQ(found.next, now + 1000ms);
  EXPECT_EQ(part->ended.load(), errc::deadline);
  EXPECT_TRUE(whole->live());
  EXPECT_FALSE(table.expire(now + 900ms).any) << "once";
  table.set_part(1, nullptr, now);
  auto other = std::make_shared<request_context>();
  EXPECT_TRUE(table.set_part(1, other, now + 900ms));
  table.set_part(1, nullptr, now);
  EXPECT_TRUE(table.expire(now + 1000ms).any);
  EXPECT_TRUE(other->live()) << "it is no part any more";
}

TEST_F(RequestTable, APartEndsWithItsRequest) {
  begin(1);
  auto cancelled = std::make_shared<request_context>();
  EXPECT_TRUE(table.set_part(1, cancelled, now));
  table.cancel(1, errc::cancelled);
  EXPECT_EQ(cancelled->ended.load(), errc::cancelled);
  auto late = std::make_shared<request_context>();
  EXPECT_FALSE(table.set_part(1, late, now)) << "its request has ended";
  EXPECT_FALSE(table.set_part(2, late, now)) << "it is not in flight";
  begin(2);
  auto closed = std::make_shared<request_context>();
  EXPECT_TRUE(table.set_part(2, closed, now));
  table.end_all(now, [](kind, auto) {});
  EXPECT_EQ(closed->ended.load(), errc::gone);
}

TEST_F(RequestTable, TheEndOfTheConnectionEndsAllAndNamesTheUnanswered) {
  auto waiting = begin(1);
  auto answered = begin(2);
  table.answer(2, answered, now);
  now += 5ms;
  std::vector<kind> left;
  EXPECT_TRUE(table.end_all(now, [&](kind verb, auto age) {
    left.push_back(verb);
    EXPECT_EQ(age, 5ms);
  }));
  EXPECT_EQ(left, std::vector{kind::store});
  EXPECT_EQ(waiting->ended.load(), errc::gone);
  EXPECT_TRUE(table.empty());
  EXPECT_TRUE(table.has_credit());
}

TEST_F(RequestTable, TheEndOfRequestsThatHadEndedIsNoNews) {
  begin(1);
  table.cancel(1, errc::cancelled);
  EXPECT_FALSE(table.end_all(now, [](kind, auto) {}));
}

} // namespace request_table_test
