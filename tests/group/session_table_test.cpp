#include "group/session_table.hpp"

#include "tests/group/played_sessions.hpp"
#include "tests/group/sessions.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace session_table_test {

constexpr connection_id alice{1}, bob{2}, carol{3};

session_id named(uint32_t number) {
  session_id id;
  std::memcpy(id.bytes.data(), &number, sizeof number);
  id.bytes[15] = 1;
  return id;
}

class SessionTable : public ::testing::Test {
 protected:
  void open(uint32_t number, connection_id owner, bool keep = false, session_state_ptr state = nullptr) {
    table_.open({named(number), owner, space_id{1}, 64, keep, false, nullptr, std::move(state)});
  }
  bool has(uint32_t number) { return actors_.use(named(number), 0).has_value(); }
  session_state_ptr state_of(size_t tokens) {
    return run_turn(spec_, *hasher_, std::make_shared<const session_state>(),
                    {0, {}, tokens_from(1, tokens), {}})
        ->after;
  }

  space_spec spec_ = small_space();
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher(spec_);
  played_table actors_;
  session_table& table_ = actors_.table;
};

TEST_F(SessionTable, IsSavedByTheTurnThatBeganLast) {
  open(1, alice);
  auto first = actors_.use(named(1), 100), second = actors_.use(named(1), 200);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(actors_.save(named(1), first->generation, state_of(100)), turn_outcome::saved);
  EXPECT_EQ(actors_.save(named(1), second->generation, state_of(200)), turn_outcome::late);
  EXPECT_EQ(actors_.use(named(1), 0)->state->tokens(), 100U);
}

TEST_F(SessionTable, AnAbortedTurnLeavesItAsItWas) {
  open(1, alice);
  auto before = actors_.use(named(1), 100)->generation;
  EXPECT_EQ(actors_.use(named(1), 50)->generation, before);
  EXPECT_EQ(table_.list(1)[0].lengths.committed_tokens(), 0U);
  EXPECT_EQ(table_.list(1)[0].lengths.allocated_tokens(), 50U);
}

TEST_F(SessionTable, ClosingTwiceIsNoErrorAndATurnMayFinishAfterwards) {
  open(1, alice);
  auto turn = actors_.use(named(1), 100);
  EXPECT_TRUE(table_.close(named(1)));
  EXPECT_FALSE(table_.close(named(1)));
  EXPECT_EQ(actors_.save(named(1), turn->generation, state_of(100)), turn_outcome::closed);
  EXPECT_EQ(actors_.use(named(1), 0).error().code, errc::gone);
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_EQ(table_.bytes(), 0U);
}

TEST_F(SessionTable, EndsWithItsOwnerUnlessItIsKept) {
  open(1, alice);
  open(2, alice, true);
  open(3, bob);
  table_.end(alice);
  table_.end(alice);
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(2));
  EXPECT_TRUE(has(3));
  for (const auto& one : table_.list(10))
    EXPECT_EQ(one.owner, one.id == named(2) ? connection_id{} : bob);
  table_.end(bob);
  EXPECT_TRUE(table_.close(named(2)));
  EXPECT_EQ(table_.bytes(), 0U);
}

TEST_F(SessionTable, AnOwnerEndsItsOwnLeastRecentlyUsedOne) {
  actors_.table = session_table({100, 1 << 20, 2, 1 << 20});
  open(1, alice);
  open(2, alice);
  open(9, bob);
  EXPECT_TRUE(has(1)); // session 1 was used
  open(3, alice);
  EXPECT_FALSE(has(2));
  EXPECT_TRUE(has(1));
  EXPECT_TRUE(has(9));
  EXPECT_EQ(table_.evicted(), 1U);
}

TEST_F(SessionTable, TheOwnersBytesAreBounded) {
  actors_.table = session_table({100, 1 << 20, 100, 10'000}); // 32 bytes per chunk
  open(2, alice, false, state_of(64 * 100));
  open(1, alice, false, state_of(64 * 100));
  open(9, bob, false, state_of(64 * 100));
  EXPECT_TRUE(has(2));
  auto turn = actors_.use(named(1), 64 * 200);
  EXPECT_EQ(actors_.save(named(1), turn->generation, state_of(64 * 200)), turn_outcome::saved);
  EXPECT_TRUE(has(1));
  EXPECT_FALSE(has(2));
  turn = actors_.use(named(1), 64 * 1000);
  EXPECT_EQ(actors_.save(named(1), turn->generation, state_of(64 * 1000)), turn_outcome::saved);
  EXPECT_FALSE(has(1)) << "alone it has more than its owner may have";
  EXPECT_TRUE(has(9));
}

TEST_F(SessionTable, KeptOnesOfNobodyEndFirstThenThoseOfTheLargestOwner) {
  actors_.table = session_table({4, 1 << 20, 100, 1 << 20});
  open(1, alice, true);
  open(2, bob);
  table_.end(alice);
  open(3, carol);
  open(4, carol);
  open(5, bob, false, state_of(6400)); // exceeds the bound
  EXPECT_FALSE(has(1));
  open(6, carol); // bob has the most bytes, and session 2 is his coldest
  EXPECT_FALSE(has(2));
  EXPECT_TRUE(has(3));
  EXPECT_EQ(table_.size(), 4U);
}

TEST_F(SessionTable, OneOfAFewTokensTakesHalfAKilobyte) {
  for (uint32_t i = 1; i <= 1000; ++i)
    open(i, alice, false, state_of(100)); // one chunk and 36 tokens
  EXPECT_LT(table_.bytes() / table_.size(), 450 + sizeof(digest) + 36 * sizeof(uint32_t));
  RecordProperty("bytes_a_session", static_cast<int>(table_.bytes() / table_.size()));
}

} // namespace session_table_test
} // namespace terrace::test
