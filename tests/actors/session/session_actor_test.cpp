// A session's actor owns what the session is, and the group has it back before anybody learns that the actor has ended.
#include "actors/group/group_actor.hpp"

#include "tests/actors/group_fixture.hpp"
#include "tests/group/sessions.hpp"

#include <malloc.h>

#include <cstdio>
#include <cstring>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

constexpr connection_id alice{1}, bob{2};

session_id numbered(uint8_t number) { return {{number}}; }

class SessionActor : public group_fixture {
 protected:
  SessionActor() {
    start({.host_objects = 8});
    begin({});
  }
  void TearDown() override {
    end();
    group_fixture::TearDown();
  }
  void begin(const session_bounds& most) {
    end();
    leases_ = std::make_shared<lease_ledger>();
    held_ = leases_->open();
    group_ = spawn_group(sys, {}, std::make_shared<credit_gate>(), group, most, nullptr, held_);
  }
  void end() {
    if (group_)
      stop(group_);
    group_ = group_actor();
  }

  template <class Answer, class Whom, class Message>
  Answer asked(const Whom& whom, Message message) {
    auto answer = ask<Answer>(whom, std::move(message));
    settle();
    return std::move(**answer);
  }
  session_id open(uint8_t number, connection_id owner = alice, bool held = false) {
    asked<open_session_answer>(
        group_, open_session_request{{numbered(number), owner, in_->id, 64, false, held, nullptr, nullptr}});
    return numbered(number);
  }
  find_session_answer find(const session_id& id, const session_actor& ended = session_actor()) {
    return asked<find_session_answer>(group_, find_session_request{id, ended});
  }
  use_session_answer use(const session_actor& of, uint64_t tokens = 0) {
    return asked<use_session_answer>(of, use_session_request{tokens});
  }
  save_session_answer save(const session_actor& of, uint64_t generation, size_t tokens,
                           std::optional<session_hold> hold = {}) {
    return asked<save_session_answer>(of,
                                      save_session_request{generation, state_of(tokens), std::move(hold)});
  }
  session_report listed(const session_id& id) {
    auto all = asked<sessions_answer>(group_, sessions_request{1, id}).listed;
    return all.empty() ? session_report{} : all.front().report;
  }
  size_t sessions() { return asked<sessions_answer>(group_, sessions_request{}).count; }
  bool alive(const session_actor& of) { return use(of).failure.code != errc::internal; }
  session_state_ptr state_of(size_t tokens) {
    return terrace::test::run_turn(in_->spec, *hasher_, std::make_shared<const session_state>(),
                                   {0, {}, terrace::test::tokens_from(1, tokens), {}})
        ->after;
  }
  /// A turn after which the session holds a lease.
  std::weak_ptr<const lease> hold(const session_actor& of, uint8_t number, uint64_t bytes = 100) {
    auto made = std::make_shared<lease>();
    made->id.bytes[0] = number;
    made->space = in_;
    made->taken_for = reference_kind::session;
    std::weak_ptr<const lease> kept = made;
    auto generation = use(of).found.generation;
    auto saved = save(of, generation, 10, session_hold{std::move(made), bytes, 250, 0});
    EXPECT_EQ(saved.outcome, turn_outcome::saved);
    EXPECT_EQ(saved.unheld, "");
    return kept;
  }

  space_registry spaces_{{.spaces_max = 2}};
  space_ptr in_ = spaces_.open(terrace::test::small_space()).value(); // chunks of 64
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher(in_->spec);
  std::shared_ptr<lease_ledger> leases_;
  account_ptr held_;
  group_actor group_;
};

} // namespace

TEST_F(SessionActor, IsSpawnedByItsFirstTurnAndItsGroupKnowsEachTurn) {
  auto id = open(1);
  auto found = find(id);
  ASSERT_EQ(found.failure.code, errc::ok) << found.failure.text;
  EXPECT_EQ(find(id).found, found.found) << "there is one";
  auto turn = use(found.found, 100);
  ASSERT_EQ(turn.failure.code, errc::ok);
  EXPECT_EQ(listed(id).lengths.allocated_tokens(), 100u);
  EXPECT_EQ(save(found.found, turn.found.generation, 100).outcome, turn_outcome::saved);
  EXPECT_EQ(listed(id).lengths.committed_tokens(), 100u);
  EXPECT_EQ(listed(id).generation, turn.found.generation + 1);
  EXPECT_EQ(find(numbered(9)).failure.code, errc::gone);
}

TEST_F(SessionActor, OfTwoTurnsAtOnceTheSecondIsLate) {
  auto actor = find(open(1)).found;
  auto first = use(actor, 100), second = use(actor, 200);
  auto saved =
      ask<save_session_answer>(actor, save_session_request{first.found.generation, state_of(100), {}});
  auto late =
      ask<save_session_answer>(actor, save_session_request{second.found.generation, state_of(200), {}});
  settle();
  EXPECT_EQ((*saved)->outcome, turn_outcome::saved);
  EXPECT_EQ((*late)->outcome, turn_outcome::late);
  EXPECT_EQ(use(actor).found.state->tokens(), 100u);
}

TEST_F(SessionActor, TheLeastRecentlyUsedIsParkedAndItsNextTurnGoesOn) {
  begin({.active_max = 2});
  auto first = open(1), second = open(2), third = open(3);
  auto parked = find(first).found;
  auto turn = use(parked, 100);
  EXPECT_EQ(save(parked, turn.found.generation, 100).outcome, turn_outcome::saved);
  auto other = find(second).found;
  EXPECT_TRUE(alive(parked)) << "and used later than the other";
  find(third);
  EXPECT_FALSE(alive(other));
  EXPECT_TRUE(alive(parked));
  find(second, other);
  EXPECT_TRUE(alive(find(third).found)) << "which was used later";
  EXPECT_FALSE(alive(parked));
  EXPECT_EQ(listed(first).lengths.committed_tokens(), 100u) << "its group has it";
  auto again = find(first, parked);
  ASSERT_EQ(again.failure.code, errc::ok) << again.failure.text;
  EXPECT_NE(again.found, parked);
  auto next = use(again.found);
  EXPECT_EQ(next.found.generation, turn.found.generation + 1);
  EXPECT_EQ(next.found.state->tokens(), 100u);
  EXPECT_EQ(sessions(), 3u);
}

TEST_F(SessionActor, ATurnThatBeganBeforeItWasParkedIsSavedAfterwards) {
  begin({.active_max = 1});
  auto first = open(1), second = open(2);
  auto parked = find(first).found;
  auto turn = use(parked, 100);
  find(second);
  ASSERT_FALSE(alive(parked));
  EXPECT_EQ(listed(first).lengths.allocated_tokens(), 100u);
  auto again = find(first, parked).found;
  EXPECT_EQ(save(again, turn.found.generation, 100).outcome, turn_outcome::saved);
}

TEST_F(SessionActor, ATurnAndItsParkingCrossAndNothingIsLost) {
  begin({.active_max = 1});
  auto first = open(1), second = open(2);
  auto actor = find(first).found;
  auto generation = use(actor, 100).found.generation;
  // The group parks it while its save is on the way.
  auto other = ask<find_session_answer>(group_, find_session_request{second, session_actor()});
  auto saved = ask<save_session_answer>(actor, save_session_request{generation, state_of(100), {}});
  settle();
  if ((*saved)->failure.code != errc::ok) {
    EXPECT_EQ(save(find(first, actor).found, generation, 100).outcome, turn_outcome::saved);
  }
  EXPECT_EQ(use(find(first, actor).found).found.state->tokens(), 100u);
}

TEST_F(SessionActor, EndsWithItsSessionWhileATurnIsUnderWay) {
  auto id = open(1);
  auto actor = find(id).found;
  auto turn = use(actor, 100);
  EXPECT_TRUE(asked<close_session_answer>(group_, close_session_request{id}).closed);
  EXPECT_FALSE(asked<close_session_answer>(group_, close_session_request{id}).closed);
  EXPECT_FALSE(alive(actor));
  EXPECT_EQ(find(id, actor).failure.code, errc::gone);
  EXPECT_EQ(turn.found.generation, 1u);
}

TEST_F(SessionActor, EndsWithItsOwnerAndBeyondABound) {
  begin({.sessions_max = 2});
  auto first = find(open(1)).found, second = find(open(2, bob)).found;
  auto held = hold(first, 1);
  caf::anon_send(group_, end_owner_notice{bob});
  settle();
  EXPECT_FALSE(alive(second));
  open(3, bob);
  EXPECT_FALSE(held.expired());
  open(4, bob);
  EXPECT_EQ(sessions(), 2u);
  auto left = listed(numbered(1)).id == numbered(1);
  EXPECT_EQ(alive(first), left);
  EXPECT_EQ(held.expired(), !left);
}

TEST_F(SessionActor, HasLetGoWhatItHeldWhenItsEndIsAnswered) {
  auto id = open(1, alice, true);
  auto held = hold(find(id).found, 1);
  EXPECT_FALSE(held.expired());
  auto closed = ask<close_session_answer>(group_, close_session_request{id});
  settle();
  EXPECT_TRUE((*closed)->held);
  EXPECT_TRUE(held.expired());
}

TEST_F(SessionActor, ARevokedLeaseIsLetGoAndTheSessionGoesOn) {
  auto id = open(1, alice, true);
  auto actor = find(id).found;
  auto held = hold(actor, 1);
  lease_id named{};
  named.bytes[0] = 1;
  EXPECT_EQ(asked<mark_revoked_answer>(group_, mark_revoked_request{named}).failure.code, errc::ok);
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(use(find(id, actor).found).failure.code, errc::ok);
}

TEST_F(SessionActor, TheColdestGivesUpWhatItHoldsAlthoughItHasAnActor) {
  std::vector<std::weak_ptr<const lease>> held;
  for (uint8_t number : {1, 2, 3})
    held.push_back(hold(find(open(number, alice, true)).found, number));
  auto freed = asked<yield_holds_answer>(group_, yield_holds_request{numbered(1), 150});
  EXPECT_EQ(freed.bytes, 200u);
  EXPECT_FALSE(held[0].expired()) << "whoever asks keeps what it holds";
  EXPECT_TRUE(held[1].expired());
  EXPECT_TRUE(held[2].expired());
  EXPECT_EQ(sessions(), 3u);
}

TEST_F(SessionActor, TheNextSaveReplacesWhatItHolds) {
  auto actor = find(open(1, alice, true)).found;
  auto first = hold(actor, 1);
  auto second = hold(actor, 2);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  auto generation = use(actor).found.generation;
  save(actor, generation, 10);
  EXPECT_FALSE(second.expired()) << "a lookup leaves it";
  save(actor, generation + 1, 10, session_hold{});
  EXPECT_TRUE(second.expired());
}

TEST_F(SessionActor, EndsWithItsGroup) {
  auto actor = find(open(1, alice, true)).found;
  auto held = hold(actor, 1);
  end();
  EXPECT_FALSE(alive(actor));
  EXPECT_TRUE(held.expired());
}

TEST_F(SessionActor, OneThatEndsWithoutGivingItsSessionBackIsGone) {
  auto id = open(1, alice, true);
  auto actor = find(id).found;
  auto held = hold(actor, 1);
  stop(actor);
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(find(id).found, actor) << "nobody has noticed";
  EXPECT_EQ(find(id, actor).failure.code, errc::gone);
  EXPECT_EQ(sessions(), 0u);
  auto closed = open(2);
  stop(find(closed).found);
  EXPECT_FALSE(asked<close_session_answer>(group_, close_session_request{closed}).closed);
  EXPECT_TRUE(asked<check_group_answer>(group_, check_group_request{}).differences.empty());
}

TEST_F(SessionActor, ARecountFindsNothingWhileSomeAreActive) {
  begin({.active_max = 2});
  for (uint8_t number = 1; number <= 5; ++number) {
    auto actor = find(open(number)).found;
    save(actor, use(actor, 100).found.generation, 100);
  }
  auto counted = asked<check_sessions_answer>(group_, check_sessions_request{true});
  EXPECT_EQ(counted.sessions, 5u);
  EXPECT_FALSE(counted.more);
  EXPECT_TRUE(counted.differences.empty());
}

TEST_F(SessionActor, AParkedOneTakesLessThanAKilobyteAndAnActiveOneTwoMore) {
  auto allocated = [] { return static_cast<double>(::mallinfo2().uordblks); };
  constexpr size_t count = 2'000;
  auto id_of = [](size_t number) {
    session_id id;
    std::memcpy(id.bytes.data(), &number, sizeof number);
    id.bytes[15] = 1;
    return id;
  };
  double before = allocated();
  for (size_t number = 0; number < count; ++number) {
    caf::anon_send(group_, open_session_request{
                               {id_of(number), alice, in_->id, 64, false, false, nullptr, state_of(100)}});
    settle();
  }
  double parked = (allocated() - before) / count;
  std::vector<session_actor> actors;
  for (size_t number = 0; number < count; ++number) {
    actors.push_back(find(id_of(number)).found);
    use(actors.back(), 110);
  }
  double active = (allocated() - before) / count;
  std::printf(
      "bytes of the heap: %.0f for a parked session with a chunk and 36 tokens, %.0f for an active one\n",
      parked, active);
  EXPECT_LT(parked, 1'024);
  EXPECT_LT(active, parked + 2'048);
}
