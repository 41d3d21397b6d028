// Every prompt that begins with a saved turn finds it, and no other prompt does.
#include "group/session_id.hpp"

#include "group/session_table.hpp"
#include "index/prefix_hasher.hpp"
#include "tests/group/played_sessions.hpp"
#include "tests/group/sessions.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

class SavedTurn : public ::testing::Test {
 protected:
  /// A lookup, after which the session has its tokens.
  chunk_prefix go_on(turn_request asked) {
    auto done = run_turn(spec_, *hasher_, state_, std::move(asked), root_, saved_);
    EXPECT_TRUE(done) << (done ? "" : done.error().text);
    if (!done)
      return {};
    state_ = done->after;
    return done->whole;
  }
  /// Saves these tokens.
  chunk_prefix save(turn_request asked) {
    asked.tail = true;
    auto whole = go_on(std::move(asked));
    saved_ = std::make_shared<const saved_turn>(
        saved_turn{in_, whole.whole_chunks(), whole.tail_tokens, whole.chunks.back(), {}});
    state_ = std::make_shared<const session_state>(state_->with_saved(saved_));
    return whole;
  }
  std::span<const uint8_t> last() const { return state_->last().bytes; }
  bool continued() const { return state_->saved() == saved_ && saved_; }

  space_spec spec_ = small_space(); // chunks of 64
  space_registry spaces_{{.spaces_max = 2}};
  space_ptr in_ = spaces_.open(spec_).value();
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher(spec_);
  session_root_ptr root_;
  session_state_ptr state_ = std::make_shared<const session_state>();
  saved_turn_ptr saved_;
  std::vector<uint32_t> tokens_ = tokens_from(5, 500);
};

TEST_F(SavedTurn, HasTheTailAsItsLastChunk) {
  auto whole = save({0, {}, std::span(tokens_).first(150), {}});
  EXPECT_EQ(whole.chunks.size(), 3U);
  EXPECT_EQ(whole.tail_tokens, 22U);
  EXPECT_EQ(whole.whole_chunks(), 2U);
  EXPECT_EQ(saved_->tokens(), 150U);
  EXPECT_EQ(whole.chunks.back(),
            tail_digest(*hasher_, whole.chunks[1], 128, std::span(tokens_).subspan(128, 22), {}));
  auto more = go_on({150, last(), std::span(tokens_).subspan(150, 60), {}});
  EXPECT_EQ(more.chunks.size(), 3U) << "a lookup has whole chunks only";
  EXPECT_NE(more.chunks.back(), whole.chunks.back()) << "no tail has the digest of a chunk";
  EXPECT_EQ(save({210, last(), {}, {}}).chunks, save({0, {}, std::span(tokens_).first(210), {}}).chunks)
      << "as deltas and as a whole";
}

TEST_F(SavedTurn, IsContinuedByPromptsThatBeginWithIt) {
  save({0, {}, std::span(tokens_).first(150), {}});
  EXPECT_TRUE(continued());
  go_on({150, last(), std::span(tokens_).subspan(150, 200), {}});
  EXPECT_TRUE(continued());
  go_on({350, last(), std::span(tokens_).subspan(350), {}});
  EXPECT_TRUE(continued());
  go_on({0, {}, tokens_, {}}); // the client has reconnected
  EXPECT_TRUE(continued());
}

TEST_F(SavedTurn, IsContinuedIfItsFirstBlockWasNamedForItsAdapter) {
  // with sha256_cbor the key of the first chunk is not its digest
  spec_.hash_block_tokens = spec_.chunk_tokens;
  in_ = spaces_.open(spec_).value();
  root_ = std::make_shared<const session_root>(session_root{std::nullopt, "adapter", ""});
  for (size_t end : {size_t{64}, size_t{30}}) { // a whole chunk, and a tail alone
    state_ = std::make_shared<const session_state>();
    saved_ = nullptr;
    save({0, {}, std::span(tokens_).first(end), {}});
    go_on({0, {}, std::span(tokens_).first(200), {}});
    EXPECT_TRUE(continued()) << end;
    auto other = tokens_;
    other[5] = 1;
    go_on({0, {}, other, {}});
    EXPECT_FALSE(continued()) << end;
  }
}

TEST_F(SavedTurn, IsNotContinuedByOneThatDiffersInsideItsTailAndAgainByOneThatDoesNot) {
  save({0, {}, std::span(tokens_).first(150), {}});
  auto other = tokens_from(9'000, 100);
  auto base = state_->digest_at(140, *hasher_);
  go_on({140, base->bytes, other, {}});
  EXPECT_FALSE(continued());
  base = state_->digest_at(128, *hasher_);
  go_on({128, base->bytes, std::span(tokens_).subspan(128, 21), {}});
  EXPECT_FALSE(continued()) << "one token too few";
  go_on({149, last(), std::span(tokens_).subspan(149, 1), {}});
  EXPECT_TRUE(continued());
  go_on({0, {}, other, {}});
  EXPECT_FALSE(continued());
}

TEST_F(SavedTurn, IsNotContinuedWithAnotherItemInItsTail) {
  save({0, {}, std::span(tokens_).first(150), {{"cat", 130, 10}}});
  go_on({0, {}, std::span(tokens_).first(200), {{"dog", 130, 10}}});
  EXPECT_FALSE(continued());
  go_on({0, {}, std::span(tokens_).first(200), {{"cat", 130, 10}}});
  EXPECT_TRUE(continued());
}

TEST_F(SavedTurn, WithoutATailEndsWithItsLastChunk) {
  save({0, {}, std::span(tokens_).first(128), {}});
  EXPECT_EQ(saved_->tail_tokens, 0U);
  go_on({128, last(), std::span(tokens_).subspan(128, 10), {}});
  EXPECT_TRUE(continued());
  go_on({64, state_->digest_at(64, *hasher_)->bytes, std::span(tokens_).subspan(64), {}});
  EXPECT_TRUE(continued());
  go_on({64, state_->digest_at(64, *hasher_)->bytes, tokens_from(9'000, 100), {}});
  EXPECT_FALSE(continued());
}

TEST_F(SavedTurn, ItsTailBeginsAtTheRootOfTheSessionIfThePromptIsShort) {
  auto of = [&](session_root_ptr root) {
    root_ = std::move(root);
    state_ = std::make_shared<const session_state>();
    saved_ = nullptr;
    auto key = save({0, {}, std::span(tokens_).first(20), {}}).chunks.back();
    go_on({0, {}, std::span(tokens_).first(30), {}});
    EXPECT_TRUE(continued());
    return key;
  };
  std::set<digest> keys;
  keys.insert(of(nullptr));
  keys.insert(of(std::make_shared<session_root>(session_root{std::nullopt, "adapter", ""})));
  keys.insert(of(std::make_shared<session_root>(session_root{std::nullopt, "", "salt"})));
  keys.insert(of(std::make_shared<session_root>(session_root{digest{{1}}, "", ""})));
  EXPECT_EQ(keys.size(), 4U);
}

TEST_F(SavedTurn, ACutKeepsItIfItEndsBehindIt) {
  save({0, {}, std::span(tokens_).first(150), {}});
  go_on({150, last(), std::span(tokens_).subspan(150, 200), {}});
  EXPECT_EQ(state_->cut(349, *hasher_).saved(), saved_);
  EXPECT_EQ(state_->cut(200, *hasher_).saved(), saved_) << "up to 192";
  EXPECT_EQ(state_->cut(190, *hasher_).saved(), nullptr) << "up to 128";
}

TEST_F(SavedTurn, ATableKeepsItUntilTheNextSaveAndThroughLookups) {
  tail_registry tails;
  played_table actors;
  session_table& table = actors.table;
  session_id id{{1}};
  save({0, {}, std::span(tokens_).first(150), {}});
  table.open({id, connection_id{1}, in_->id, 64, false, false, nullptr, nullptr});
  auto used = actors.use(id, 0);
  EXPECT_EQ(
      actors.save_end(id, used->generation, state_, tails.refer(in_, saved_->key, tail_referrer::session)),
      turn_outcome::saved);
  EXPECT_EQ(actors.use(id, 0)->saved, saved_);
  auto late = std::make_shared<const session_state>();
  EXPECT_EQ(actors.save_end(id, used->generation, late, {}), turn_outcome::late);
  EXPECT_EQ(actors.use(id, 0)->saved, saved_) << "a late save changes nothing";
  used = actors.use(id, 0);
  actors.save(id, used->generation, late); // the turn is a lookup
  EXPECT_EQ(actors.use(id, 0)->saved, saved_);
  EXPECT_EQ(tails.references(tail_referrer::session), 1U);
  auto listed = table.one(id);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].saved, saved_);
  // A fork refers to it, too.
  session_id fork{{2}};
  table.open({fork, connection_id{1}, in_->id, 64, false, false, nullptr, state_},
             tails.refer(in_, saved_->key, tail_referrer::session));
  EXPECT_EQ(actors.use(fork, 0)->saved, saved_);
  EXPECT_EQ(tails.references(tail_referrer::session), 2U);
  used = actors.use(id, 0);
  actors.save_end(id, used->generation, late, {});
  EXPECT_EQ(actors.use(id, 0)->saved, nullptr);
  EXPECT_EQ(tails.references(tail_referrer::session), 1U);
  EXPECT_TRUE(table.close(fork));
  EXPECT_EQ(tails.size(), 0U);
  EXPECT_TRUE(table.one(fork).empty());
}

} // namespace
} // namespace terrace::test
