#include "group/session_turn.hpp"

#include "group/session.hpp"
#include "tests/group/sessions.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

class SessionTurn : public ::testing::Test {
 protected:
  result<turn_result> turn(turn_request asked) {
    return run_turn(spec_, *hasher_, state_, std::move(asked), root_);
  }
  /// A turn that succeeds and whose result the session keeps.
  turn_result go_on(turn_request asked) {
    auto done = turn(std::move(asked));
    EXPECT_TRUE(done) << (done ? "" : done.error().text);
    if (!done)
      return {};
    state_ = done->after;
    return *done;
  }
  std::vector<digest> chunks_of(const std::vector<uint32_t>& tokens, const extra_keys& extra = {}) {
    return hash_chunks(*hasher_, {64, 16}, {}, tokens, extra);
  }
  std::span<const uint8_t> last() const { return state_->last().bytes; }

  space_spec spec_ = small_space(); // chunks of 64, hash blocks of 16
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher(spec_);
  session_root_ptr root_;
  session_state_ptr state_ = std::make_shared<const session_state>();
  std::vector<uint32_t> tokens_ = tokens_from(5, 500);
};

TEST_F(SessionTurn, ContinuesAtAnyTokenLikeTheWholePrompt) {
  for (size_t end : {1, 40, 64, 65, 127, 128, 300, 301, 500}) {
    auto base = state_->tokens();
    auto digest = base == 0 ? std::span<const uint8_t>() : last();
    auto done = go_on({base, digest, std::span(tokens_).subspan(base, end - base), {}});
    EXPECT_EQ(done.whole.chunks, chunks_of(tokens_from(5, end))) << end;
    EXPECT_EQ(done.whole.prompt_tokens, end);
    EXPECT_EQ(done.whole.first_token, 0U);
    EXPECT_EQ(state_->tokens(), end);
  }
}

TEST_F(SessionTurn, HashesTheNewTokensAndLessThanAChunkBefore) {
  auto history = tokens_from(1, 20'000);
  go_on({0, {}, history, {}});
  auto more = tokens_from(9, 100);
  auto done = go_on({20'000, last(), more, {}});
  EXPECT_LT(done.hashed, 100U + 64U);
  EXPECT_GE(done.hashed, 100U);
}

TEST_F(SessionTurn, WithoutNewTokensIsTheSameAgain) {
  auto first = go_on({0, {}, std::span(tokens_).first(128), {}});
  auto again = go_on({128, last(), {}, {}});
  EXPECT_EQ(again.hashed, 0U);
  EXPECT_EQ(again.whole.chunks, first.whole.chunks);
}

TEST_F(SessionTurn, KnowsWhatTheLookupBeforeFoundOfWhatItKeeps) {
  go_on({0, {}, std::span(tokens_).first(300), {}}); // four chunks
  EXPECT_EQ(state_->known().chunks, 0U);
  state_ = std::make_shared<const session_state>(state_->with_known({3, {8, 1}}));
  auto longer = turn({300, last(), std::span(tokens_).subspan(300), {}});
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->after->known().chunks, 3U);
  EXPECT_EQ(longer->after->known().before, (departure_counts{8, 1}));
  auto other = turn({128, chunks_of(tokens_from(5, 128)).back().bytes, tokens_from(7000, 200), {}});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->after->known().chunks, 2U) << "the others are of another prompt";
  EXPECT_EQ(state_->cut(130, *hasher_).known().chunks, 2U) << "a fork";
}

TEST_F(SessionTurn, LeavesOutTheFirstChunks) {
  auto history = tokens_from(5, 64 * 150); // more than two segments of the chain
  go_on({0, {}, history, {}});
  auto begun = session_turn::begin(spec_, *hasher_, state_, nullptr, {history.size(), last(), tokens_, {}});
  ASSERT_TRUE(begun);
  auto resolver = prefix_resolver::make(spec_, *hasher_, begun->input());
  ASSERT_TRUE(resolver);
  while (!*resolver->step(hash_step_work)) {
  }
  auto hashed = resolver->take();
  auto whole = begun->finish(hashed, *hasher_);
  EXPECT_EQ(whole.chunks.size(), 157U);
  for (size_t left_out : {1, 63, 64, 65, 128, 150, 156, 1000}) {
    auto rest = begun->finish(hashed, *hasher_, left_out);
    size_t first = rest.first_token / 64;
    EXPECT_EQ(first, std::min<size_t>(left_out, 150));
    EXPECT_TRUE(std::equal(rest.chunks.begin(), rest.chunks.end(),
                           whole.chunks.begin() + static_cast<ptrdiff_t>(first), whole.chunks.end()));
    EXPECT_EQ(rest.prompt_tokens, whole.prompt_tokens);
    EXPECT_EQ(begun->after()->tokens(), whole.prompt_tokens) << "the session has all of it";
  }
}

TEST_F(SessionTurn, IsCutAtTheFirstDifferenceInTheTail) {
  go_on({0, {}, std::span(tokens_).first(150), {}}); // two chunks and 22 tokens
  auto other = tokens_from(7000, 100);
  auto done = go_on({140, last(), other, {}});
  auto prompt = tokens_from(5, 140);
  prompt.insert(prompt.end(), other.begin(), other.end());
  EXPECT_EQ(done.whole.chunks, chunks_of(prompt));
  EXPECT_EQ(state_->tokens(), 240U);
}

TEST_F(SessionTurn, IsCutAtTheStartOfAChunkOfTheHistory) {
  go_on({0, {}, tokens_, {}});
  auto other = tokens_from(7000, 10);
  // the digest at that position, not that of all tokens
  auto done = go_on({192, state_->chain()[2].bytes, other, {}});
  EXPECT_EQ(done.whole.chunks, chunks_of(tokens_from(5, 192)));
  EXPECT_EQ(state_->tokens(), 202U);
}

TEST_F(SessionTurn, InsideAnOldChunkSaysFromWhereToSend) {
  go_on({0, {}, tokens_, {}});
  auto done = turn({200, last(), tokens_from(1, 1), {}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errc::bad_request);
  EXPECT_NE(done.error().text.find("send the tokens from 192 on"), std::string::npos) << done.error().text;
}

TEST_F(SessionTurn, OfAnotherPromptSaysTheLengthAndWhatToSend) {
  go_on({0, {}, tokens_, {}});
  digest wrong = state_->last();
  wrong.bytes[0] ^= 1;
  for (const auto& done :
       {turn({500, wrong.bytes, tokens_from(1, 1), {}}), turn({501, last(), tokens_from(1, 1), {}})}) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, errc::gone);
    EXPECT_NE(done.error().text.find("the session has 500 tokens"), std::string::npos) << done.error().text;
    EXPECT_NE(done.error().text.find("send the whole prompt"), std::string::npos) << done.error().text;
  }
}

TEST_F(SessionTurn, RefusesWhatContradictsItself) {
  go_on({0, {}, tokens_, {}});
  std::vector<uint32_t> many(prefix_input::tokens_max);
  for (auto& asked : {turn_request{0, last(), tokens_, {}}, turn_request{0, {}, {}, {}},
                      turn_request{500, last().first(8), tokens_, {}}, turn_request{500, {}, tokens_, {}},
                      turn_request{500, last(), many, {}}}) {
    auto done = turn(asked);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, errc::bad_request);
  }
}

TEST_F(SessionTurn, KeepsTheRootOfItsSession) {
  digest seed = digest::from(std::vector<uint8_t>(32, 7));
  root_ = std::make_shared<const session_root>(session_root{seed, "adapter", "salt"});
  go_on({0, {}, std::span(tokens_).first(100), {}});
  auto done = go_on({100, last(), std::span(tokens_).subspan(100), {}});
  extra_keys extra;
  extra.lora = "adapter";
  extra.salt = "salt";
  EXPECT_EQ(done.whole.chunks, hash_chunks(*hasher_, {64, 16}, {seed, 0}, tokens_, extra));
}

TEST_F(SessionTurn, ChunksOfOneBlockHaveTheKeysOfTheWholePrompt) {
  spec_.algorithm = hash_algorithm::sha256_cbor;
  spec_.hash_block_tokens = spec_.chunk_tokens;
  hasher_ = make_token_hasher(spec_);
  root_ = std::make_shared<const session_root>(session_root{std::nullopt, "adapter", ""});
  auto keys_of = [&](std::span<const uint32_t> tokens) {
    prefix_input input;
    input.tokens = tokens;
    input.extra.lora = "adapter";
    auto resolver = prefix_resolver::make(spec_, *hasher_, std::move(input)).value();
    while (!resolver.step(1'000).value()) {
    }
    return resolver.take().chunks;
  };
  for (size_t end : {size_t{40}, size_t{64}, size_t{100}, size_t{128}, size_t{200}}) {
    auto prompt = std::span(tokens_).first(end);
    size_t had = state_->tokens();
    auto done = had == 0 ? go_on({0, {}, prompt, {}}) : go_on({had, last(), prompt.subspan(had), {}});
    EXPECT_EQ(done.whole.chunks, keys_of(prompt)) << end;
  }
}

TEST_F(SessionTurn, TakesItemsFromTheStartOfTheBaseChunk) {
  extra_keys extra;
  extra.items = {{"image", 70, 60}};
  go_on({0, {}, std::span(tokens_).first(100), extra.items});
  auto done = go_on({100, last(), std::span(tokens_).subspan(100), extra.items});
  EXPECT_EQ(done.whole.chunks, chunks_of(tokens_, extra));
}

TEST(SessionLengths, AreInOrder) {
  session_lengths lengths;
  lengths.commit(150, 64);
  EXPECT_EQ(lengths.protected_tokens(), 128U);
  EXPECT_EQ(lengths.held_tokens(64), 64U) << "the tail's chunk";
  lengths.begin(300);
  EXPECT_EQ(lengths.allocated_tokens(), 300U);
  EXPECT_EQ(lengths.committed_tokens(), 150U);
  EXPECT_EQ(lengths.held_tokens(64), 320U - 128U);
  lengths.begin(100); // the turn was given up, and the next one is shorter
  EXPECT_EQ(lengths.allocated_tokens(), 150U);
  lengths.commit(100, 64);
  EXPECT_EQ(lengths.protected_tokens(), 64U);
  EXPECT_EQ(lengths.allocated_tokens(), 100U);
}

} // namespace
} // namespace terrace::test
