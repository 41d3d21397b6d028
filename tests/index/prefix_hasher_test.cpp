#include "index/prefix_hasher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace terrace::test {
namespace prefix_hasher_test {

constexpr hash_algorithm all_algorithms[] = {hash_algorithm::sha256_cbor, hash_algorithm::sha256,
                                             hash_algorithm::xxh3_128};

std::vector<uint32_t> counting(size_t count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1'000);
  return tokens;
}

class PrefixHasher : public ::testing::TestWithParam<hash_algorithm> {
 protected:
  std::unique_ptr<token_hasher> hasher_ = make_token_hasher({.algorithm = GetParam(), .seed = "7"});
  chunk_shape shape_{64, 16};
};

TEST_P(PrefixHasher, GivesAChunkTheDigestOfItsLastHashBlock) {
  auto tokens = counting(200);
  auto chunks = hash_chunks(*hasher_, shape_, {}, tokens, {});
  auto blocks = hash_chunks(*hasher_, {16, 16}, {}, tokens, {});
  ASSERT_EQ(chunks.size(), 3u); // a tail of 8 tokens is left out
  for (size_t i = 0; i < chunks.size(); ++i)
    EXPECT_EQ(chunks[i], blocks[i * 4 + 3]);
}

TEST_P(PrefixHasher, GivesTheSameInSlicesOfAnySize) {
  auto tokens = counting(700);
  extra_keys extra{"lora", {{"image", 100, 80}, {"sound", 200, 5}}, "salt"};
  auto whole = hash_chunks(*hasher_, shape_, {}, tokens, extra);
  for (size_t slice : {1, 16, 17, 100, 640, 10'000}) {
    prefix_hasher work(*hasher_, shape_, {}, tokens, extra);
    size_t steps = 1;
    while (!work.step(slice))
      ++steps;
    EXPECT_EQ(work.chunks(), whole) << "slices of " << slice;
    EXPECT_LE(steps, 640 / 16u) << "a step hashes at least one block";
    EXPECT_GE(steps, slice < 1'000 ? 640 * (16 + hash_call_work) / 16 / (slice + 500) : 1);
  }
}

TEST_P(PrefixHasher, ContinuesAParent) {
  auto tokens = counting(640);
  extra_keys extra{"lora", {{"image", 100, 80}}, "salt"};
  auto whole = hash_chunks(*hasher_, shape_, {}, tokens, extra);
  auto rest = hash_chunks(*hasher_, shape_, {whole[3], 256}, std::span(tokens).subspan(256), extra);
  EXPECT_EQ(rest, std::vector<digest>(whole.begin() + 4, whole.end()));
}

TEST_P(PrefixHasher, HasNothingToDoBelowOneChunk) {
  auto tokens = counting(63);
  prefix_hasher work(*hasher_, shape_, {}, tokens, {});
  EXPECT_TRUE(work.done());
  EXPECT_TRUE(work.step(1));
  EXPECT_TRUE(work.chunks().empty());
}

TEST_P(PrefixHasher, TellsPromptsApartByAllThatEntersTheirKeys) {
  auto tokens = counting(64), others = tokens;
  ++others[0];
  auto other_seed = make_token_hasher({.algorithm = GetParam(), .seed = "8"});
  auto no_seed = make_token_hasher({.algorithm = GetParam(), .seed = ""});
  extra_keys lora{.lora = "x"}, salt{.salt = "x"}, item{.items = {{"x", 0, 1}}},
      moved{.items = {{"x", 1, 1}}};
  std::vector<digest> all;
  for (auto& [hasher, text, extra] :
       std::vector<std::tuple<token_hasher*, std::vector<uint32_t>, extra_keys>>{
           {hasher_.get(), tokens, {}},
           {hasher_.get(), others, {}},
           {other_seed.get(), tokens, {}},
           {no_seed.get(), tokens, {}},
           {hasher_.get(), tokens, lora},
           {hasher_.get(), tokens, item},
           {hasher_.get(), tokens, moved}})
    all.push_back(hash_chunks(*hasher, shape_, {}, text, extra)[0]);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_NE(hash_chunks(*hasher_, shape_, {}, tokens, salt)[0],
            hash_chunks(*hasher_, shape_, {}, tokens, {})[0]);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, PrefixHasher, ::testing::ValuesIn(all_algorithms),
                         [](const auto& which) { return std::string(to_string(which.param)); });

TEST(Sha256Hasher, HasNoParentInTheFirstBlockWithoutASeed) {
  EXPECT_FALSE(make_token_hasher({.algorithm = hash_algorithm::sha256, .seed = ""})->root());
  EXPECT_TRUE(make_token_hasher({.algorithm = hash_algorithm::sha256, .seed = "0"})->root());
}

} // namespace prefix_hasher_test
} // namespace terrace::test
