#include "group/group_state.hpp"

#include "tests/group/played_sessions.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

using namespace terrace;

namespace group_state_test {

struct GroupState : ::testing::Test {
  std::shared_ptr<credit_gate> notices = std::make_shared<credit_gate>();
  group_state group{{.spaces_max = 2}, notices};
  terrace::test::played_group actors{group};

  static space_spec spec(const std::string& model) {
    auto made = terrace::test::small_space();
    made.model = model;
    return made;
  }
};

constexpr connection_id owner{4};
const lease_id id{{1}};
const lookup_id lookup{{2}};

TEST_F(GroupState, ReportsTheSpacesThatItHas) {
  auto first = group.spaces().open(spec("a"));
  auto second = group.spaces().open(spec("b"));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(report_of(group).spaces, 2u);
  EXPECT_EQ(report_of(group).open_spaces.size(), 2u);
  second->reset();
  EXPECT_EQ(report_of(group).open_spaces.size(), 1u);
}

TEST_F(GroupState, ReservesNumbersAsLongAsThereIsRoom) {
  auto reserved = reserve(group.spaces(), reserve_spaces_request{{digest{{1}}, digest{{2}}, digest{{3}}}});
  ASSERT_EQ(reserved.ids.size(), 3u);
  EXPECT_NE(reserved.ids[0], space_id{});
  EXPECT_NE(reserved.ids[1], space_id{});
  EXPECT_EQ(reserved.ids[2], space_id{});
}

TEST_F(GroupState, FindsALeaseUntilItsOwnerEndsIt) {
  auto held = std::make_shared<const lease>();
  for (bool whole : {false, true}) {
    notices->offer(1);
    group.apply(add_lease_notice{id, owner, held});
    EXPECT_EQ(notices->waiting(), 0u) << "the notice was read";
    EXPECT_EQ(use(group.leases(), use_lease_request{id}).found, held);
    EXPECT_EQ(report_of(group).leases, 1u);
    if (whole) {
      group.apply(end_owner_notice{owner});
    } else {
      notices->offer(1);
      group.apply(end_lease_notice{id, owner});
    }
    EXPECT_EQ(notices->waiting(), 0u);
    auto gone = use(group.leases(), use_lease_request{id});
    EXPECT_EQ(gone.found, nullptr);
    EXPECT_EQ(gone.failure.code, errc::gone);
  }
}

TEST_F(GroupState, AwaitsLookupsById) {
  auto context = std::make_shared<request_context>(), waits = std::make_shared<request_context>();
  EXPECT_EQ(begin(group.lookups(), begin_lookup_request{lookup, context}).failure.code, errc::ok);
  EXPECT_EQ(begin(group.lookups(), begin_lookup_request{lookup, context}).failure.code, errc::bad_request);
  errc first = errc::ok;
  lookup_outcome_ptr second;
  group.lookups().await(lookup, waits, [&](const error& failure, const auto&) { first = failure.code; });
  waits->ended = errc::deadline;
  group.lookups().sweep();
  EXPECT_EQ(first, errc::deadline);
  group.lookups().await(lookup, nullptr, [&](const error&, const auto& found) { second = found; });
  EXPECT_FALSE(second);
  auto outcome = std::make_shared<const lookup_outcome>();
  group.lookups().finish(lookup, context, outcome);
  EXPECT_EQ(second, outcome);
  EXPECT_FALSE(group.lookups().cancel(lookup_id{{9}}));
}

TEST_F(GroupState, SessionsEndWithTheirOwnerAndAreCounted) {
  auto probe = std::make_shared<metrics::client_probe>();
  group_state counted({.spaces_max = 2}, notices, {}, probe);
  terrace::test::played_group of_counted{counted};
  session_id kept{{1}}, ends{{2}};
  counted.answer(open_session_request{{kept, owner, space_id{1}, 64, true, false, nullptr, nullptr}});
  counted.answer(open_session_request{{ends, owner, space_id{1}, 64, false, false, nullptr, nullptr}});
  EXPECT_EQ(counted.answer(sessions_request{1}).listed.size(), 1u);
  EXPECT_EQ(report_of(counted).sessions, 2u);

  auto used = of_counted.use(kept, 100);
  ASSERT_EQ(used.failure.code, errc::ok);
  auto state = std::make_shared<const session_state>();
  EXPECT_EQ(of_counted.save(kept, {used.found.generation, state}).outcome, turn_outcome::saved);
  EXPECT_EQ(of_counted.save(kept, {used.found.generation, state}).outcome, turn_outcome::late);

  of_counted.end(owner);
  EXPECT_EQ(of_counted.use(ends, 0).failure.code, errc::gone);
  EXPECT_EQ(counted.answer(sessions_request{9}).count, 1u);
  EXPECT_TRUE(of_counted.close(kept).closed);
  EXPECT_FALSE(of_counted.close(kept).closed);
  EXPECT_EQ(counted.answer(sessions_request{9}).bytes, 0u);
}

/// Held sessions of 100 bytes each; two of them fit.
class GroupStateHolds : public GroupState {
 protected:
  space_ptr in = *group.spaces().open(spec("held"));
  session_id open(uint8_t number, bool keep = false) {
    session_id named{{number}};
    group.answer(open_session_request{{named, owner, space_id{1}, 64, keep, true, nullptr, nullptr}});
    return named;
  }
  lease_ptr lease_of(uint8_t number) {
    auto made = std::make_shared<lease>();
    made->id = lease_id{{number}};
    made->chunks.resize(number);
    made->space = in;
    return made;
  }
  save_session_answer save(const session_id& of, lease_ptr what, uint64_t bytes = 100) {
    auto used = actors.use(of, 0);
    EXPECT_TRUE(used.found.held);
    return actors.save(of, {used.found.generation, std::make_shared<session_state>(),
                            session_hold{std::move(what), bytes, 250}});
  }
};

TEST_F(GroupStateHolds, ATailIsUnreferredWhenNoTurnForkOrStoreHasIt) {
  auto of = open(1), fork = session_id{{2}};
  auto saved = std::make_shared<saved_turn>();
  saved->space = in;
  saved->tail_tokens = 5;
  saved->key = digest{{7}};
  digest_chain none;
  auto hasher = make_token_hasher(in->spec);
  auto after = std::make_shared<const session_state>(none, std::vector<uint32_t>(5), 64, *hasher, saved);
  EXPECT_EQ(group.answer(refer_tail_request{in, saved->key, owner}).failure.code, errc::ok);
  EXPECT_EQ(group.tails().references(tail_referrer::store), 1U);
  auto used = actors.use(of, 5).found;
  EXPECT_EQ(actors.save(of, {used.generation, after, session_hold{}}).outcome, turn_outcome::saved);
  EXPECT_EQ(group.tails().references(tail_referrer::store), 0U) << "the session has it";
  EXPECT_EQ(group.tails().references(tail_referrer::session), 1U);
  EXPECT_EQ(actors.save(of, {used.generation, after, session_hold{}}).outcome, turn_outcome::late);
  EXPECT_EQ(group.tails().references(tail_referrer::session), 1U);
  group.answer(open_session_request{{fork, owner, space_id{1}, 64, true, true, nullptr, after}});
  EXPECT_EQ(group.tails().references(tail_referrer::session), 2U);
  EXPECT_EQ(group.answer(sessions_request{10, of}).listed.size(), 1U);
  actors.close(of);
  EXPECT_EQ(group.tails().next_unreferred().space, nullptr);
  used = actors.use(fork, 5).found;
  EXPECT_EQ(used.saved, saved);
  actors.save(fork, {used.generation, std::make_shared<session_state>(), session_hold{}});
  EXPECT_EQ(group.tails().next_unreferred().key, saved->key);
  EXPECT_EQ(group.tails().size(), 0U);
  group.answer(refer_tail_request{in, saved->key, owner});
  group.apply(end_owner_notice{owner});
  EXPECT_EQ(group.tails().next_unreferred().key, saved->key) << "nobody is going to save it";
}

TEST_F(GroupStateHolds, ALookupsSaveLeavesWhatIsHeld) {
  auto of = open(1);
  auto what = lease_of(1);
  EXPECT_EQ(save(of, what).unheld, "");
  EXPECT_EQ(use(group.leases(), use_lease_request{what->id}).found, what) << "it can be read by its id";
  auto used = actors.use(of, 100);
  actors.save(of, {used.found.generation, std::make_shared<session_state>(), {}});
  EXPECT_EQ(group.answer(sessions_request{9}).held, 1u);
  EXPECT_TRUE(group.take_ended().holds.empty());
}

TEST_F(GroupStateHolds, ATurnIsToldWhatTheSessionHolds) {
  auto of = open(1);
  EXPECT_EQ(actors.use(of, 0).found.held_chunks, 0U);
  auto what = std::make_shared<lease>();
  what->id = lease_id{{3}};
  what->chunks.resize(3);
  what->space = in;
  auto places = std::vector<object_place>(3 * chunk_layout(in->spec).objects_per_chunk());
  for (size_t i = 0; i + 1 < places.size(); ++i)
    places[i].id = object_id{i + 1}; // one object of the last chunk is in another tier
  what->held = {{tier_kind::host, std::make_shared<object_hold>(nullptr, places)}};
  EXPECT_EQ(host_chunks_of(*what), 2U);
  auto used = actors.use(of, 0).found;
  actors.save(of, {used.generation, std::make_shared<session_state>(),
                   session_hold{what, 100, 250, host_chunks_of(*what)}});
  EXPECT_EQ(actors.use(of, 0).found.held_chunks, 2U);
  save(of, nullptr);
  EXPECT_EQ(actors.use(of, 0).found.held_chunks, 0U);
}

TEST_F(GroupStateHolds, WhatIsSavedReplacesWhatWasHeld) {
  auto of = open(1);
  auto first = lease_of(1);
  save(of, first);
  save(of, lease_of(2));
  EXPECT_EQ(first.use_count(), 1) << "it has ended";
  EXPECT_EQ(use(group.leases(), use_lease_request{first->id}).failure.code, errc::gone);
  auto listed = group.answer(sessions_request{9}).listed;
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].held_tokens, 2 * in->spec.chunk_tokens);
  save(of, nullptr);
  EXPECT_EQ(group.answer(sessions_request{9}).held, 0u);
}

TEST_F(GroupStateHolds, ALateSaveHoldsNothing) {
  auto of = open(1);
  auto used = actors.use(of, 100);
  save(of, lease_of(1));
  auto late = actors.save(
      of, {used.found.generation, std::make_shared<session_state>(), session_hold{lease_of(2), 100, 250}});
  EXPECT_EQ(late.outcome, turn_outcome::late);
  EXPECT_TRUE(group.take_ended().holds.empty());
  actors.close(of);
  EXPECT_EQ(
      actors.save(of, {2, std::make_shared<session_state>(), session_hold{lease_of(3), 100, 250}}).outcome,
      turn_outcome::closed);
  EXPECT_EQ(group.answer(sessions_request{9}).held, 0u);
}

TEST_F(GroupStateHolds, OneThatAloneIsTooLargeIsToldWhyAndDisplacesNobody) {
  auto small = open(1), large = open(2);
  save(small, lease_of(1));
  EXPECT_NE(save(large, lease_of(2), 251).unheld.find("251 bytes"), std::string::npos);
  EXPECT_EQ(group.answer(sessions_request{9}).held, 1u);
  EXPECT_FALSE(group.next_demotion().chunks);
}

TEST_F(GroupStateHolds, TheColdestGiveUpAsMuchAsIsAskedFor) {
  auto first = open(1), second = open(2), third = open(3);
  save(first, lease_of(1), 10);
  save(second, lease_of(2), 20);
  save(third, lease_of(3), 30);
  EXPECT_EQ(actors.yield(first, 15), 20u) << "whoever asks keeps what it holds";
  EXPECT_EQ(group.answer(sessions_request{9}).held, 2u);
  EXPECT_EQ(group.next_demotion().chunks->size(), 2u);
  EXPECT_EQ(actors.yield(third, 100), 10u);
  EXPECT_EQ(actors.yield(third, 100), 0u);
  EXPECT_EQ(group.answer(sessions_request{9}).held, 1u);
}

TEST_F(GroupStateHolds, AUseKeepsASessionWarm) {
  auto first = open(1), second = open(2), third = open(3);
  save(first, lease_of(1), 10);
  save(second, lease_of(2), 20);
  save(third, lease_of(3), 30);
  actors.use(first, 0);
  EXPECT_EQ(actors.yield(third, 5), 20u) << "the second was used least recently";
}

TEST_F(GroupStateHolds, SessionsThatEndHoldNothing) {
  auto closed = open(1), ends = open(2), kept = open(3, true);
  for (const auto& one : {closed, ends, kept})
    save(one, lease_of(one.bytes[0]));
  EXPECT_TRUE(actors.close(closed).held);
  EXPECT_FALSE(actors.close(closed).held);
  EXPECT_EQ(group.take_ended().holds.size(), 1u);
  actors.end(owner);
  EXPECT_EQ(group.take_ended().holds.size(), 1u);
  EXPECT_EQ(group.answer(sessions_request{9}).held, 1u);
  EXPECT_EQ(actors.revoke(lease_id{{3}}).failure.code, errc::ok);
  EXPECT_EQ(group.take_ended().holds.size(), 1u);
}

TEST_F(GroupStateHolds, NoMoreThanItsBoundWaitToBeDemoted) {
  auto ledger = std::make_shared<lease_ledger>();
  auto account = ledger->open();
  auto too_much = account->claim_for(1000, 10'000); // more than sessions hold, whatever they give up
  auto probe = std::make_shared<metrics::client_probe>();
  group_state counted({.spaces_max = 2}, notices, {}, probe, account);
  terrace::test::played_group of_counted{counted};
  size_t sessions = group_state::demotions_max + 5;
  for (size_t n = 0; n < sessions; ++n) {
    session_id named{};
    std::memcpy(named.bytes.data(), &n, sizeof n);
    lease_id number{};
    std::memcpy(number.bytes.data(), &n, sizeof n);
    auto what = std::make_shared<lease>();
    what->id = number;
    what->chunks.resize(1);
    what->space = in;
    counted.answer(open_session_request{{named, owner, space_id{1}, 64, false, true, nullptr, nullptr}});
    of_counted.save(named, {1, std::make_shared<session_state>(), session_hold{what, 100, 250}});
    EXPECT_EQ(counted.answer(sessions_request{9}).held, 1u) << "the others gave way";
  }
  size_t waited = 0;
  while (auto next = counted.next_demotion().chunks) {
    EXPECT_EQ(next->size(), 1u);
    ++waited;
  }
  EXPECT_EQ(waited, group_state::demotions_max);
}

TEST_F(GroupState, ListsLeasesAndMarksThoseThatAreRevoked) {
  auto held = std::make_shared<lease>();
  held->id = id;
  held->bytes = 77;
  notices->offer(1);
  group.apply(add_lease_notice{id, owner, held});
  auto listed = group.leases().list(0, 10);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].id, id);
  EXPECT_EQ(listed[0].owner, owner);
  EXPECT_EQ(listed[0].bytes, 77u);
  EXPECT_TRUE(group.leases().list(listed[0].number, 10).empty());
  EXPECT_EQ(group.answer(mark_revoked_request{id}).failure.code, errc::ok);
  EXPECT_EQ(use(group.leases(), use_lease_request{id}).failure.code, errc::gone);
  EXPECT_EQ(group.answer(mark_revoked_request{lease_id{{9}}}).failure.code, errc::not_found);
}

} // namespace group_state_test
