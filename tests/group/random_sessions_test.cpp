// Compares sessions with a model that keeps all tokens and hashes the whole prompt each time.
#include "group/session_table.hpp"
#include "group/session_turn.hpp"
#include "tests/group/played_sessions.hpp"
#include "tests/group/sessions.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <map>

namespace terrace::test {
namespace {

struct model_session {
  connection_id owner{};
  bool keep = false;
  std::vector<uint32_t> tokens;
  digest last;
};

class RandomSessions : public ::testing::Test {
 protected:
  void step();
  void open();
  void turn(session_id id, model_session& of);
  void fork(session_id id, const model_session& of);
  void end(connection_id owner);
  void close(session_id id);
  void compare();

  uint64_t below(uint64_t n) { return random_() % n; }
  session_id fresh() {
    session_id id;
    std::memcpy(id.bytes.data(), &++last_id_, sizeof last_id_);
    return id;
  }
  connection_id some_owner() { return connection_id{1 + below(4)}; }
  /// Often returns the same tokens, so that prompts of different sessions have common parts.
  std::vector<uint32_t> some_tokens() {
    return tokens_from(static_cast<uint32_t>(below(3)), below(8) == 0 ? below(1000) : below(150));
  }

  uint64_t seed_ = test_seed();
  std::mt19937_64 random_{seed_};
  space_spec spec_ = small_space(); // chunks of 64
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher(spec_);
  played_table actors_;
  session_table& table_ = actors_.table;
  std::map<session_id, model_session> model_;
  uint64_t last_id_ = 0;
};

void RandomSessions::open() {
  auto id = fresh();
  model_session one{some_owner(), below(3) == 0, {}, {}};
  table_.open({id, one.owner, space_id{1}, 64, one.keep, false, nullptr, nullptr});
  model_.emplace(id, one);
}

void RandomSessions::turn(session_id id, model_session& of) {
  uint64_t have = of.tokens.size();
  uint64_t base = below(4) == 0 ? below(have + 2) : have; // sometimes one token more than there are
  bool wrong = below(16) == 0;
  bool whole = below(2) == 0 || base % 64 != 0 || base == 0 || base > have; // which digest the client sends
  auto more = some_tokens();
  digest told = of.last;
  if (!whole)
    told = hash_chunks(*hasher_, {64, 16}, {}, std::span(of.tokens).first(base), {}).back();
  if (wrong)
    told.bytes[below(32)] ^= 4;
  auto used = actors_.use(id, base + more.size());
  ASSERT_TRUE(used);
  ASSERT_EQ(used->state->last(), of.last);
  auto told_bytes = base == 0 ? std::span<const uint8_t>() : std::span<const uint8_t>(told.bytes);
  auto done = run_turn(spec_, *hasher_, used->state, {base, told_bytes, more, {}});
  bool known = base % 64 == 0 || base >= have / 64 * 64;
  if (base > have || (wrong && base != 0)) {
    ASSERT_FALSE(done);
    ASSERT_EQ(done.error().code, errc::gone);
    return;
  }
  if (!known || base + more.size() == 0) {
    ASSERT_FALSE(done);
    ASSERT_EQ(done.error().code, errc::bad_request);
    return;
  }
  ASSERT_TRUE(done) << done.error().text;
  auto prompt = of.tokens;
  prompt.resize(base);
  prompt.insert(prompt.end(), more.begin(), more.end());
  ASSERT_EQ(done->whole.chunks, hash_chunks(*hasher_, {64, 16}, {}, prompt, {}));
  ASSERT_LT(done->hashed, more.size() + 64);
  switch (below(8)) {
    case 0: return; // the turn is aborted
    case 1:         // the session is closed while the turn runs
      ASSERT_TRUE(table_.close(id));
      ASSERT_EQ(actors_.save(id, used->generation, done->after), turn_outcome::closed);
      model_.erase(id);
      return;
    case 2: { // another turn overtakes it
      auto other = run_turn(spec_, *hasher_, used->state, {0, {}, tokens_from(77, 70), {}});
      ASSERT_EQ(actors_.save(id, used->generation, other->after), turn_outcome::saved);
      ASSERT_EQ(actors_.save(id, used->generation, done->after), turn_outcome::late);
      of.tokens = tokens_from(77, 70);
      of.last = other->after->last();
      return;
    }
    default:
      ASSERT_EQ(actors_.save(id, used->generation, done->after), turn_outcome::saved);
      of.tokens = std::move(prompt);
      of.last = done->after->last();
  }
}

void RandomSessions::fork(session_id id, const model_session& of) {
  uint64_t at = below(of.tokens.size() + 1);
  auto used = actors_.use(id, 0);
  ASSERT_TRUE(used);
  auto state = std::make_shared<const session_state>(used->state->cut(at, *hasher_));
  uint64_t have = of.tokens.size();
  uint64_t expected = at >= have / 64 * 64 ? at : at / 64 * 64;
  ASSERT_EQ(state->tokens(), expected);
  model_session one{some_owner(), below(3) == 0, of.tokens, state->last()};
  one.tokens.resize(expected);
  auto fresh_id = fresh();
  table_.open({fresh_id, one.owner, space_id{1}, 64, one.keep, false, used->root, state});
  model_.emplace(fresh_id, one);
}

void RandomSessions::end(connection_id owner) {
  table_.end(owner);
  for (auto at = model_.begin(); at != model_.end();) {
    if (at->second.owner != owner) {
      ++at;
    } else if (at->second.keep) {
      at->second.owner = {};
      ++at;
    } else {
      at = model_.erase(at);
    }
  }
}

void RandomSessions::close(session_id id) {
  ASSERT_TRUE(table_.close(id));
  ASSERT_FALSE(table_.close(id));
  model_.erase(id);
}

void RandomSessions::compare() {
  auto all = table_.list(SIZE_MAX);
  ASSERT_EQ(all.size(), model_.size());
  ASSERT_EQ(table_.size(), model_.size());
  uint64_t bytes = 0;
  for (const auto& one : all) {
    auto expected = model_.find(one.id);
    ASSERT_NE(expected, model_.end());
    ASSERT_EQ(one.owner, expected->second.owner);
    ASSERT_EQ(one.lengths.committed_tokens(), expected->second.tokens.size());
    bytes += one.bytes;
  }
  ASSERT_EQ(table_.bytes(), bytes);
}

void RandomSessions::step() {
  if (model_.size() < 3 || below(20) == 0) {
    open();
    return;
  }
  auto at = std::next(model_.begin(), static_cast<ptrdiff_t>(below(model_.size())));
  auto chosen = below(40);
  if (chosen == 0)
    end(some_owner());
  else if (chosen <= 2)
    close(at->first);
  else if (chosen <= 6 && model_.size() < 200)
    fork(at->first, at->second);
  else
    turn(at->first, at->second);
}

TEST_F(RandomSessions, BehaveLikeAModelThatKeepsAllTokens) {
  SCOPED_TRACE(seed_text(seed_));
  for (int i = 0; i < 5000; ++i) {
    step();
    if (!model_.empty() && below(4) == 0)
      actors_.park(std::next(model_.begin(), static_cast<ptrdiff_t>(below(model_.size())))->first);
    if (i % 16 == 0)
      compare();
    if (HasFatalFailure())
      return;
  }
}

} // namespace
} // namespace terrace::test
