// A recount names each total that is wrong, and reports no difference for changes made meanwhile.
#include "group/session_table.hpp"
#include "tests/group/played_sessions.hpp"
#include "tests/group/sessions.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace terrace {

/// Damages what a table keeps, as a bug in it would.
struct damaged_sessions {
  static void counts_bytes(session_table& table) { table.bytes_ += 7; }
  static void counts_bytes_of(session_table& table, connection_id owner) {
    table.owners_[owner].bytes += 7;
    table.bytes_ += 0;
  }
  static void counts_bytes_of_one(session_table& table, connection_id owner) {
    auto& of = table.owners_[owner];
    of.sessions.front().bytes += 7;
    of.bytes += 7;
    table.bytes_ += 7;
  }
  static void forgets_the_id(session_table& table, const session_id& id) { table.by_id_.erase(id); }
  static void lists_for_another(session_table& table, connection_id owner) {
    table.owners_[owner].sessions.front().owner = connection_id{99};
  }
  static void says_it_has_a_tail(session_table& table, connection_id owner) {
    auto& one = table.owners_[owner].sessions.front();
    one.told->saved = std::make_shared<const saved_turn>(saved_turn{.tail_tokens = 5});
  }
  static void keeps_an_empty_owner(session_table& table) { table.owners_[connection_id{50}]; }
};

namespace testing {
namespace {

constexpr connection_id alice{1}, bob{2};

session_id numbered(uint32_t number) {
  session_id id;
  std::memcpy(id.bytes.data(), &number, sizeof number);
  return id;
}

class SessionRecount : public ::testing::Test {
 protected:
  void open(uint32_t number, connection_id owner, bool keep = false) {
    table_.open({numbered(number), owner, space_id{1}, 64, keep, false, nullptr, nullptr});
  }
  session_state_ptr state_of(size_t tokens) {
    return run_turn(spec_, *hasher_, std::make_shared<const session_state>(),
                    {0, {}, tokens_from(1, tokens), {}})
        ->after;
  }
  /// `between` runs between the steps.
  template <class Between>
  std::vector<std::string> recount(Between&& between, size_t step = 1) {
    std::vector<std::string> found;
    table_.begin_recount();
    for (;;) {
      auto now = table_.recount_step(step, found);
      if (now == session_table::recount::done)
        return found;
      if (now == session_table::recount::interrupted)
        table_.begin_recount();
      between();
    }
  }
  std::vector<std::string> recount() {
    return recount([] {});
  }
  std::string only() {
    auto found = recount();
    return found.size() == 1 ? found.front() : std::to_string(found.size()) + " differences";
  }

  space_spec spec_ = small_space();
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher(spec_);
  played_table actors_;
  session_table& table_ = actors_.table;
};

TEST_F(SessionRecount, FindsNothingInATableThatIsRight) {
  EXPECT_TRUE(recount().empty());
  for (uint32_t number = 1; number <= 5; ++number)
    open(number, number % 2 == 0 ? alice : bob);
  EXPECT_TRUE(recount().empty());
}

TEST_F(SessionRecount, NamesTheBytesOfAllSessions) {
  open(1, alice);
  damaged_sessions::counts_bytes(table_);
  EXPECT_NE(only().find("bytes of sessions: "), std::string::npos) << only();
}

TEST_F(SessionRecount, NamesTheBytesOfAnOwner) {
  open(1, alice);
  open(2, bob);
  damaged_sessions::counts_bytes_of(table_, bob);
  EXPECT_NE(only().find("bytes of the sessions of connection 2: "), std::string::npos) << only();
}

TEST_F(SessionRecount, NamesASessionThatCountsForMoreThanItHas) {
  open(1, alice);
  damaged_sessions::counts_bytes_of_one(table_, alice);
  EXPECT_NE(only().find("session 01000000000000000000000000000000 has "), std::string::npos) << only();
}

TEST_F(SessionRecount, NamesASessionWithoutAReferenceToItsTail) {
  open(1, alice);
  ASSERT_TRUE(actors_.use(numbered(1), 0)); // the table has what its actor says
  damaged_sessions::says_it_has_a_tail(table_, alice);
  EXPECT_EQ(only(), "session 01000000000000000000000000000000 was saved with a tail, and refers to none");
}

TEST_F(SessionRecount, NamesASessionThatItsIdDoesNotLeadTo) {
  open(1, alice);
  open(2, alice);
  damaged_sessions::forgets_the_id(table_, numbered(1));
  auto found = recount();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "session 01000000000000000000000000000000 cannot be found by its id");
  EXPECT_EQ(found[1], "sessions: 2 were counted, and 1 are kept");
}

TEST_F(SessionRecount, NamesASessionThatIsListedForAnother) {
  open(1, alice);
  damaged_sessions::lists_for_another(table_, alice);
  auto found = recount();
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].find("is listed for connection 1, and belongs to connection 99"), std::string::npos);
}

TEST_F(SessionRecount, NamesAnOwnerWithoutSessions) {
  damaged_sessions::keeps_an_empty_owner(table_);
  EXPECT_EQ(only(), "connection 50 is listed, and owns no session");
}

TEST_F(SessionRecount, CountsRightWhileTheTableChanges) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  std::vector<session_state_ptr> states;
  for (size_t tokens : {1, 64, 100, 200})
    states.push_back(state_of(tokens));
  uint32_t number = 0;
  auto change = [&] {
    uint32_t which = number == 0 ? 0 : 1 + static_cast<uint32_t>(random() % number);
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        if (table_.size() < 64) // otherwise the table would grow faster than it is counted
          open(++number, connection_id{1 + random() % 4}, random() % 2 == 0);
        return;
      case 3: table_.close(numbered(which)); return;
      case 4:
        if (random() % 16 == 0)
          table_.end(connection_id{1 + random() % 4});
        return;
      default:
        if (auto turn = actors_.use(numbered(which), 10))
          actors_.save(numbered(which), turn->generation, states[random() % states.size()]);
        if (random() % 2 == 0)
          actors_.park(numbered(which));
    }
  };
  for (int round = 0; round < 200; ++round) {
    auto found = recount(
        [&] {
          for (size_t n = random() % 3; n != 0; --n)
            change();
        },
        1 + random() % 8);
    ASSERT_TRUE(found.empty()) << found.front() << ", round " << round;
    for (size_t n = random() % 4; n != 0; --n)
      change();
  }
}

} // namespace
} // namespace testing
} // namespace terrace
