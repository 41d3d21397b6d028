#include "index/extra_keys.hpp"
#include "index/prefix_resolver.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace terrace::test {
namespace {

class PrefixResolver : public ::testing::Test {
 protected:
  result<chunk_prefix> resolve(const prefix_input& input) {
    auto made = prefix_resolver::make(spec_, *hasher_, input);
    if (!made)
      return tl::unexpected(made.error());
    for (;;) {
      auto done = made->step(100);
      if (!done)
        return tl::unexpected(done.error());
      if (*done)
        return made->take();
    }
  }
  /// Returns the digests of units that end at `ends`, one after the other.
  std::vector<uint8_t> digests_at(const std::vector<uint32_t>& ends) {
    auto blocks = hash_chunks(*hasher_, {16, 16}, {}, tokens_, {});
    std::vector<uint8_t> flat;
    for (uint32_t end : ends)
      flat.insert(flat.end(), blocks[end / 16 - 1].bytes.begin(), blocks[end / 16 - 1].bytes.end());
    return flat;
  }
  static std::vector<uint32_t> counting(size_t n) {
    std::vector<uint32_t> tokens(n);
    std::iota(tokens.begin(), tokens.end(), 5);
    return tokens;
  }

  space_spec spec_ = small_space(); // chunks of 64, hash blocks of 16
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher(spec_);
  std::vector<uint32_t> tokens_ = counting(330); // 5 chunks and a tail of 10
  std::vector<digest> chunks_ = hash_chunks(*hasher_, {64, 16}, {}, tokens_, {});
};

TEST_F(PrefixResolver, HashesTokens) {
  auto prefix = resolve({.tokens = tokens_}).value();
  EXPECT_EQ(prefix.chunks, chunks_);
  EXPECT_EQ(prefix.first_token, 0u);
  EXPECT_EQ(prefix.prompt_tokens, 330u);
  EXPECT_FALSE(prefix.parent);
}

TEST_F(PrefixResolver, ContinuesAParent) {
  auto prefix =
      resolve({.tokens = std::span(tokens_).subspan(128), .parent = chunks_[1].bytes, .parent_tokens = 128})
          .value();
  EXPECT_EQ(prefix.chunks, std::vector<digest>(chunks_.begin() + 2, chunks_.end()));
  EXPECT_EQ(prefix.parent, chunks_[1]);
  EXPECT_EQ(prefix.first_token, 128u);
  EXPECT_EQ(prefix.prompt_tokens, 330u);
}

TEST_F(PrefixResolver, TakesAParentAtTheBeginAsASeed) {
  auto prefix = resolve({.tokens = tokens_, .parent = chunks_[0].bytes}).value();
  EXPECT_NE(prefix.chunks, chunks_);
  EXPECT_FALSE(prefix.parent); // there is no chunk before the first
}

TEST_F(PrefixResolver, GivesClientsOfDigestsTheChunksOfClientsOfTokens) {
  auto of_chunks = digests_at({64, 128, 192, 256, 320});
  EXPECT_EQ(resolve({.digests = of_chunks}).value().chunks, chunks_);

  std::vector<uint32_t> ends;
  for (uint32_t end = 16; end <= 320; end += 16)
    ends.push_back(end);
  auto of_blocks = digests_at(ends);
  auto prefix = resolve({.digests = of_blocks, .unit = digest_unit::hash_block}).value();
  EXPECT_EQ(prefix.chunks, chunks_);
  EXPECT_EQ(prefix.prompt_tokens, 320u);
}

TEST_F(PrefixResolver, LeavesOutHashBlocksThatFillNoChunk) {
  auto digests = digests_at({16, 32, 48, 64, 80});
  auto prefix = resolve({.digests = digests, .unit = digest_unit::hash_block}).value();
  EXPECT_EQ(prefix.chunks, std::vector<digest>{chunks_[0]});
  EXPECT_EQ(prefix.prompt_tokens, 80u);
}

TEST_F(PrefixResolver, PicksTheDigestsThatEndChunks) {
  std::vector<uint32_t> ends{32, 64, 128, 144, 192, 208};
  auto digests = digests_at(ends);
  auto prefix = resolve({.digests = digests, .end_offsets = ends}).value();
  EXPECT_EQ(prefix.chunks, std::vector<digest>(chunks_.begin(), chunks_.begin() + 3));
  EXPECT_EQ(prefix.prompt_tokens, 208u);
}

TEST_F(PrefixResolver, LetsDigestsBeginInTheMiddle) {
  auto digests = digests_at({192, 256});
  auto prefix = resolve({.parent_tokens = 128, .digests = digests}).value();
  EXPECT_EQ(prefix.chunks, std::vector<digest>(chunks_.begin() + 2, chunks_.begin() + 4));
  EXPECT_EQ(prefix.first_token, 128u);
  EXPECT_FALSE(prefix.parent);
}

TEST_F(PrefixResolver, TakesOpaqueDigestsOfEightBytes) {
  std::vector<uint8_t> flat(24, 9);
  auto prefix = resolve({.digests = flat, .digest_width = 8}).value();
  ASSERT_EQ(prefix.chunks.size(), 3u);
  EXPECT_EQ(prefix.chunks[0], digest::from(std::span(flat).first(8)));
}

TEST_F(PrefixResolver, AStepIsBoundedByItsWorkWhateverMakesIt) {
  // Small blocks, extra keys in each block, and long tags cost more than tokens do.
  auto steps = [&](prefix_input input) {
    auto made = prefix_resolver::make(spec_, *hasher_, std::move(input));
    EXPECT_TRUE(made);
    size_t count = 1;
    while (!made->step(1'000).value())
      ++count;
    return count;
  };
  std::vector<uint32_t> tokens(64 * 100);
  size_t plain = steps({.tokens = tokens});
  EXPECT_GE(plain, (tokens.size() + tokens.size() / 16 * hash_call_work) / 1'100);
  EXPECT_GE(steps({.tokens = tokens, .extra = {.lora = std::string(256, 'l')}}), 2 * plain);
  std::vector<std::string> tags;
  for (char c = 'a'; c < 'a' + 16; ++c)
    tags.push_back(std::string(256, c));
  EXPECT_GE(steps({.tokens = tokens, .tags = tags}), plain + 90) << "a chunk's tags are a step";
}

TEST_F(PrefixResolver, ManyDigestsAreReadInSteps) {
  constexpr size_t count = 8'192;
  std::vector<uint8_t> flat(count * 8);
  std::vector<uint32_t> ends;
  for (size_t i = 0; i < count; ++i) {
    flat[i * 8] = static_cast<uint8_t>(i);
    flat[i * 8 + 1] = static_cast<uint8_t>(i >> 8);
    ends.push_back(static_cast<uint32_t>(16 * (i + 1)));
  }
  auto steps = [&](const prefix_input& input, size_t chunks) {
    auto made = prefix_resolver::make(spec_, *hasher_, input);
    EXPECT_TRUE(made);
    size_t done = 1;
    while (!made->step(1'024).value())
      ++done;
    auto prefix = made->take();
    EXPECT_EQ(prefix.chunks.size(), chunks);
    EXPECT_EQ(prefix.chunks.back(), digest::from(std::span(flat).last(8)));
    return done;
  };
  EXPECT_EQ(steps({.digests = flat, .digest_width = 8}, count), 16U);
  EXPECT_EQ(steps({.digests = flat, .digest_width = 8, .unit = digest_unit::hash_block}, count / 4), 16U);
  EXPECT_EQ(steps({.digests = flat, .digest_width = 8, .end_offsets = ends}, count / 4), 16U);
  ends.back() -= 1;
  auto wrong = resolve({.digests = flat, .digest_width = 8, .end_offsets = ends});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, errc::bad_request);
  EXPECT_NE(wrong.error().text.find("end_offset 8191"), std::string::npos) << wrong.error().text;
}

TEST_F(PrefixResolver, PutsTagsOnTopOfTokensAndDigestsAlike) {
  auto expected = chunks_;
  std::vector<std::string> tags{"user=7"};
  apply_tags(tags, 32, expected);
  auto digests = digests_at({64, 128, 192, 256, 320});
  EXPECT_EQ(resolve({.tokens = tokens_, .tags = tags}).value().chunks, expected);
  EXPECT_EQ(resolve({.digests = digests, .tags = tags}).value().chunks, expected);
  // A parent is the engine's own digest; a key has the tags in it.
  auto rest = resolve({.tokens = std::span(tokens_).subspan(64),
                       .parent = chunks_[0].bytes,
                       .parent_tokens = 64,
                       .tags = tags});
  EXPECT_EQ(rest->parent, expected[0]);
  EXPECT_EQ(rest->chunks, std::vector<digest>(expected.begin() + 1, expected.end()));
}

TEST_F(PrefixResolver, AnEmptyPromptHasNoChunksAsAShortOne) {
  for (const prefix_input& input : {prefix_input{}, prefix_input{.tokens = std::span(tokens_).first(1)}}) {
    auto resolved = resolve(input);
    ASSERT_TRUE(resolved) << resolved.error().text;
    EXPECT_TRUE(resolved->chunks.empty());
  }
}

TEST_F(PrefixResolver, RefusesWhatContradictsItself) {
  auto digests = digests_at({64, 128});
  std::vector<uint32_t> late{64, 144}, uneven{64, 100}, falling{128, 64}, three{64, 128, 192};
  std::vector<uint32_t> huge(prefix_input::tokens_max + 1);
  extra_keys lora{.lora = "l"}, wrong_item{.items = {{"", 0, 1}}};
  const std::pair<const char*, prefix_input> wrong[] = {
      {"neither tokens nor digests", {.parent = chunks_[0].bytes, .parent_tokens = 64}},
      {"neither tokens nor digests", {.tail = true}},
      {"tokens and digests", {.tokens = tokens_, .digests = digests}},
      {"parent_tokens is 10", {.tokens = tokens_, .parent = chunks_[0].bytes, .parent_tokens = 10}},
      {"parent_tokens is 64 without", {.tokens = tokens_, .parent_tokens = 64}},
      {"the parent has 16 bytes", {.tokens = tokens_, .parent = std::span(chunks_[0].bytes).first(16)}},
      {"belong to digests", {.tokens = tokens_, .end_offsets = late}},
      {"already include", {.parent = chunks_[0].bytes, .digests = digests}},
      {"already include", {.digests = digests, .extra = lora}},
      {"digest_width is 7", {.digests = digests, .digest_width = 7}},
      {"digest_width is 33", {.digests = digests, .digest_width = 33}},
      {"multiple of digest_width", {.digests = std::span(digests).first(40)}},
      {"digest_unit is 2", {.digests = digests, .unit = static_cast<digest_unit>(2)}},
      {"3 end_offsets for 2", {.digests = digests, .end_offsets = three}},
      {"no digest ends at token 128", {.digests = digests, .end_offsets = late}},
      {"multiple of the hash block", {.digests = digests, .end_offsets = uneven}},
      {"no digest ends at token 64", {.digests = digests, .end_offsets = falling}},
      {"ends at token 2097153", {.tokens = huge}},
      {"multimodal item 0", {.tokens = tokens_, .extra = wrong_item}},
      {"a tag of 0 bytes", {.tokens = tokens_, .tags = {""}}},
  };
  for (auto& [text, input] : wrong) {
    auto refused = resolve(input);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, errc::bad_request);
    EXPECT_NE(refused.error().text.find(text), std::string::npos) << refused.error().text;
  }
}

TEST_F(PrefixResolver, BoundsChunksAndObjects) {
  spec_.chunk_tokens = spec_.hash_block_tokens = 1;
  std::vector<uint32_t> many(prefix_input::chunks_max + 1);
  EXPECT_NE(resolve({.tokens = many}).error().text.find("65537 chunks"), std::string::npos);
  spec_.world_size = 1'024;
  EXPECT_NE(resolve({.tokens = std::span(many).first(5'000)}).error().text.find("5120000 objects"),
            std::string::npos);
}

TEST_F(PrefixResolver, OfAQuestionBeyondTheBoundsTheLeadingPartIsKept) {
  auto kept = [&](prefix_input input) {
    keep_leading_part(spec_, input);
    auto prefix = resolve(input);
    EXPECT_TRUE(prefix) << prefix.error().text;
    return prefix ? prefix->chunks.size() : 0;
  };
  EXPECT_EQ(kept({.tokens = tokens_}), 5u) << "within the bounds";
  spec_.world_size = 400'000; // two chunks at a time
  spec_.pools.resize(1);
  EXPECT_EQ(kept({.tokens = tokens_}), 2u);
  EXPECT_EQ(kept({.digests = digests_at({64, 128, 192, 256})}), 2u);
  auto blocks = digests_at({16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192});
  EXPECT_EQ(kept({.digests = blocks, .unit = digest_unit::hash_block}), 2u);
}

} // namespace
} // namespace terrace::test
