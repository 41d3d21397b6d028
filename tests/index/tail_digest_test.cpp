#include "index/prefix_hasher.hpp"

#include "index/prefix_resolver.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace terrace::test {
namespace {

class TailDigest : public ::testing::Test {
 protected:
  chunk_prefix resolved(std::span<const uint32_t> tokens, extra_keys extra = {},
                        std::vector<std::string> tags = {}) {
    prefix_input input;
    input.tokens = tokens;
    input.tail = true;
    input.extra = std::move(extra);
    input.tags = std::move(tags);
    auto resolver = prefix_resolver::make(spec_, *hasher_, std::move(input)).value();
    while (!resolver.step(1'000).value()) {
    }
    return resolver.take();
  }

  space_spec spec_ = small_space(); // chunks of 64
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher(spec_);
  std::vector<uint32_t> tokens_ = [] {
    std::vector<uint32_t> made(200);
    std::iota(made.begin(), made.end(), 3U);
    return made;
  }();
};

TEST_F(TailDigest, DependsOnItsTokensItsParentAndItsKeys) {
  std::span tokens(tokens_);
  auto key = resolved(tokens).chunks.back();
  EXPECT_EQ(resolved(tokens).chunks.back(), key);
  EXPECT_NE(resolved(tokens.first(199)).chunks.back(), key);
  auto other = tokens_;
  other[0] = 9;
  EXPECT_NE(resolved(other).chunks.back(), key) << "another parent";
  EXPECT_NE(resolved(tokens, {.lora = "adapter"}).chunks.back(), key);
  EXPECT_NE(resolved(tokens, {.items = {{"cat", 195, 2}}}).chunks.back(), key);
  EXPECT_NE(resolved(tokens, {}, {"tag"}).chunks.back(), key);
  EXPECT_EQ(resolved(tokens, {.items = {{"cat", 195, 2}}}).chunks[2], resolved(tokens).chunks[2])
      << "the whole chunks are the same";
}

TEST_F(TailDigest, IsNotThatOfABlockOfTheSameTokens) {
  auto whole = resolved(tokens_);
  ASSERT_EQ(whole.chunks.size(), 4U);
  EXPECT_EQ(whole.tail_tokens, 8U);
  EXPECT_EQ(whole.whole_chunks(), 3U);
  EXPECT_NE(whole.chunks.back(), hasher_->hash_block(whole.chunks[2], std::span(tokens_).subspan(192), {}));
}

TEST_F(TailDigest, APromptThatEndsWithAChunkHasNone) {
  auto whole = resolved(std::span(tokens_).first(192));
  EXPECT_EQ(whole.chunks.size(), 3U);
  EXPECT_EQ(whole.tail_tokens, 0U);
}

TEST_F(TailDigest, CountsAsAChunk) {
  spec_.world_size = 1'024;
  spec_.pools.assign(16, spec_.pools[0]);
  for (size_t pool = 0; pool < 16; ++pool)
    spec_.pools[pool].name = std::to_string(pool);
  std::vector<uint32_t> most(64 * 64 + 1); // 64 chunks have 1,048,576 objects
  prefix_input input;
  input.tokens = most;
  EXPECT_TRUE(prefix_resolver::make(spec_, *hasher_, input));
  input.tail = true;
  EXPECT_FALSE(prefix_resolver::make(spec_, *hasher_, input));
  input.tokens = {};
  std::vector<uint8_t> digests(32);
  input.digests = digests;
  auto refused = prefix_resolver::make(spec_, *hasher_, input);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("tail"), std::string::npos) << refused.error().text;
}

} // namespace
} // namespace terrace::test
