#include "index/digest_memo.hpp"

#include "index/prefix_hasher.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>

namespace terrace::test {
namespace {

std::vector<uint32_t> random_tokens(std::mt19937& random, size_t count) {
  std::vector<uint32_t> tokens(count);
  for (uint32_t& token : tokens)
    token = random() % 3; // few values, so that prompts have much in common
  return tokens;
}

extra_keys random_extra(std::mt19937& random, uint32_t tokens) {
  extra_keys extra;
  if (random() % 3 == 0)
    extra.lora = std::string(1, static_cast<char>('a' + random() % 2));
  if (random() % 3 == 0)
    extra.salt = std::string(1, static_cast<char>('a' + random() % 2));
  for (uint32_t at = random() % 40; at < tokens && random() % 3 != 0; at += 1 + random() % 40) {
    uint32_t length = 1 + random() % 30;
    extra.items.push_back({std::string(1 + random() % 2, 'i'), at, length});
    at += length;
  }
  return extra;
}

memo_pool_ptr pool_of(uint64_t bytes) {
  return std::make_shared<memo_pool>(memo_pool::options{bytes, 7, {}});
}

// A memo could confuse the parts that two prompts have in common, and the places where they differ.
void never_changes_a_digest(uint64_t pool_bytes, uint64_t hash_mask) {
  uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  auto pool = pool_of(pool_bytes);
  for (int space = 0; space < 12; ++space) {
    auto algorithm = random() % 2 == 0 ? hash_algorithm::sha256_cbor : hash_algorithm::sha256;
    auto hasher = make_token_hasher({.algorithm = algorithm, .seed = space % 3 == 0 ? "" : "s"});
    uint32_t block = 1U << random() % 4;
    chunk_shape shape{block * (1 + static_cast<uint32_t>(random() % 6)), block};
    digest_memo memo(pool, hash_mask);
    std::vector<digest> parents;
    for (int prompt = 0; prompt < 150; ++prompt) {
      auto tokens = random_tokens(random, random() % 120);
      auto extra = random_extra(random, 120);
      prefix_hasher::position begin;
      if (!parents.empty() && random() % 2 == 0)
        begin = {parents[random() % parents.size()], random() % 3 * shape.chunk_tokens};
      auto expected = hash_chunks(*hasher, shape, begin, tokens, extra);
      for (int again = 0; again < 3; ++again) {
        prefix_hasher work(*hasher, shape, begin, tokens, extra, &memo);
        while (!work.step(1 + random() % 500)) {
        }
        ASSERT_EQ(work.chunks(), expected) << "space " << space << ", prompt " << prompt;
      }
      if (!expected.empty())
        parents.push_back(expected.back());
    }
    EXPECT_LE(pool->now().bytes, pool_bytes);
  }
  EXPECT_GT(pool->now().known, 0u);
  EXPECT_EQ(pool->now().bytes, 0u) << "of memos that have ended";
}

TEST(DigestMemo, NeverChangesADigest) { never_changes_a_digest(64 << 20, UINT64_MAX); }
TEST(DigestMemo, NeverChangesADigestWhileItIsTooSmall) { never_changes_a_digest(8 << 10, UINT64_MAX); }
TEST(DigestMemo, TellsPromptsApartWhoseFastHashesCollide) { never_changes_a_digest(64 << 20, 0); }
TEST(DigestMemo, TellsPromptsApartWhoseFastHashesOftenCollide) {
  never_changes_a_digest(32 << 10, 15ULL << 32 | 3);
}

class KnownTokens : public ::testing::Test {
 protected:
  std::vector<digest> hash(digest_memo& memo, std::span<const uint32_t> tokens,
                           const extra_keys& extra = {}) {
    prefix_hasher work(*hasher_, {64, 16}, {}, tokens, extra, &memo);
    while (!work.step(1000)) {
    }
    return work.take_chunks();
  }
  static std::vector<uint32_t> prompt(uint32_t first, size_t chunks = 10) {
    std::vector<uint32_t> tokens(chunks * 64);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }
  /// Hashes the tokens until the memo knows them.
  void learn(digest_memo& memo, std::span<const uint32_t> tokens) {
    hash(memo, tokens);
    hash(memo, tokens);
  }
  /// Returns how many of its chunks the memo knows.
  uint64_t known(digest_memo& memo, std::span<const uint32_t> tokens, const extra_keys& extra = {}) {
    uint64_t before = pool_->now().known;
    hash(memo, tokens, extra);
    return pool_->now().known - before;
  }

  std::unique_ptr<token_hasher> hasher_ = make_token_hasher({.algorithm = hash_algorithm::sha256_cbor});
  memo_pool_ptr pool_ = pool_of(64 << 10);
  const extra_keys no_extra_;
};

TEST_F(KnownTokens, AreKeptTheSecondTime) {
  digest_memo memo(pool_);
  auto tokens = prompt(1);
  hash(memo, tokens);
  EXPECT_EQ(memo.bytes(), 0u);
  EXPECT_EQ(known(memo, tokens), 0u);
  EXPECT_GT(memo.bytes(), tokens.size() * sizeof(uint32_t));
  EXPECT_EQ(known(memo, tokens), 10u);
  EXPECT_EQ(pool_->now().hashed, 20u);
}

TEST_F(KnownTokens, AreKeptTheSecondTimeWhereverTheirHashingBegins) {
  digest_memo memo(pool_);
  auto tokens = prompt(1), fork = tokens;
  std::fill(fork.begin() + 6 * 64, fork.end(),
            5); // neither the first nor the last of those that are compared together
  learn(memo, tokens);
  learn(memo, fork);
  EXPECT_EQ(known(memo, tokens), 10u);
  EXPECT_EQ(known(memo, fork), 10u);

  auto parent = hash(memo, prompt(7, 3)).back();
  auto rest = prompt(50'000, 6);
  for (uint64_t expected : {0u, 0u, 6u}) {
    uint64_t before = pool_->now().known;
    prefix_hasher work(*hasher_, {64, 16}, {parent, 3 * 64}, rest, no_extra_, &memo);
    while (!work.step(1000)) {
    }
    EXPECT_EQ(pool_->now().known - before, expected);
  }
}

TEST_F(KnownTokens, AreThoseUpToTheFirstDifference) {
  digest_memo memo(pool_);
  auto tokens = prompt(1);
  learn(memo, tokens);
  for (size_t at : {0, 63, 64, 400, 639}) {
    auto changed = tokens;
    ++changed[at];
    EXPECT_EQ(known(memo, changed), at / 64) << at;
  }
}

/// Asks for the first two chunks of 64 tokens, as `prefix_hasher` does.
memo_trail way_of(digest_memo& memo, token_hasher& hasher, std::span<const uint32_t> tokens) {
  memo_trail way;
  auto root = std::optional(hasher.root());
  auto first = memo.find({root, tokens.first(64), {}}, way);
  EXPECT_TRUE(first && memo.find({first, tokens.subspan(64, 64), {}}, way));
  return way;
}

TEST_F(KnownTokens, LeadToThoseThatFollowedThem) {
  digest_memo memo(pool_);
  auto tokens = prompt(1), fork = tokens;
  std::fill(fork.begin() + 128, fork.end(), 5);
  learn(memo, tokens);
  learn(memo, fork);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(known(memo, tokens), 10u);
    auto third = way_of(memo, *hasher_, tokens).next;
    EXPECT_NE(third, 0u) << "the third chunk is found without a hash";
    EXPECT_EQ(known(memo, fork), 10u) << "the one that followed the last time is another one";
    EXPECT_NE(way_of(memo, *hasher_, tokens).next, third);
  }
}

TEST_F(KnownTokens, LeadNowhereOnceTheNextOnesAreForgotten) {
  digest_memo memo(pool_);
  auto tokens = prompt(1, 3);
  learn(memo, tokens);
  EXPECT_EQ(known(memo, tokens), 3u);
  for (uint32_t i = 1; i <= 30; ++i) {
    learn(memo, prompt(100'000 * i));
    hash(memo, std::span(tokens).first(128)); // the third chunk is not used
  }
  EXPECT_EQ(known(memo, std::span(tokens).first(128)), 2u);
  EXPECT_EQ(known(memo, tokens), 2u);
  learn(memo, tokens);
  EXPECT_EQ(known(memo, tokens), 3u);
}

TEST_F(KnownTokens, AreOthersWithOtherExtraKeys) {
  digest_memo memo(pool_);
  auto tokens = prompt(1);
  extra_keys image{.items = {{"image", 130, 20}}};
  hash(memo, tokens, image);
  hash(memo, tokens, image);
  EXPECT_EQ(known(memo, tokens, image), 10u);
  EXPECT_EQ(known(memo, tokens), 2u);
  EXPECT_EQ(known(memo, tokens, {.lora = "x", .items = image.items}), 0u);
  EXPECT_EQ(known(memo, tokens, {.items = image.items, .salt = "x"}), 0u);
  EXPECT_EQ(known(memo, tokens, {.items = {{"image", 131, 20}}}), 2u);
  EXPECT_EQ(known(memo, tokens, {.items = {{"image", 130, 40}}}), 2u) << "it ends elsewhere";
}

TEST_F(KnownTokens, OfOneSpaceAreNotKnownInAnother) {
  digest_memo one(pool_), other(pool_);
  auto tokens = prompt(1);
  learn(one, tokens);
  EXPECT_EQ(known(other, tokens), 0u);
  EXPECT_EQ(other.bytes(), 0u) << "nor does it count that they were hashed there";
}

TEST_F(KnownTokens, AreForgottenUnlessTheyAreUsed) {
  digest_memo memo(pool_);
  auto used = prompt(1);
  learn(memo, used);
  for (uint32_t i = 1; i <= 30; ++i) { // three times the bound
    learn(memo, prompt(100'000 * i));
    ASSERT_GE(known(memo, used), 1u) << i;
    ASSERT_LE(pool_->now().bytes, pool_->bytes_max());
  }
  EXPECT_EQ(known(memo, prompt(100'000)), 0u);
}

TEST_F(KnownTokens, OfASpaceKeepTheirShareWhateverOthersAsk) {
  digest_memo greedy(pool_), modest(pool_);
  for (uint32_t i = 1; i <= 30; ++i)
    learn(greedy, prompt(100'000 * i));
  EXPECT_GT(greedy.bytes(), pool_->bytes_max() / 2) << "one alone may have all of it";
  auto tokens = prompt(1);
  for (int i = 0; i < 8; ++i) // a part of the memo may be crowded
    learn(modest, tokens);
  EXPECT_EQ(known(modest, tokens), 10u);
  for (uint32_t i = 31; i <= 60; ++i)
    learn(greedy, prompt(100'000 * i));
  EXPECT_EQ(known(modest, tokens), 10u);
  EXPECT_LE(pool_->now().bytes, pool_->bytes_max());
}

TEST_F(KnownTokens, AreDisposedOfTogether) {
  std::vector<std::shared_ptr<void>> left;
  pool_ = std::make_shared<memo_pool>(
      memo_pool::options{64 << 10, 7, [&](std::shared_ptr<void> memo) { left.push_back(std::move(memo)); }});
  {
    digest_memo memo(pool_);
    learn(memo, prompt(1));
    EXPECT_NE(pool_->now().bytes, 0u);
  }
  EXPECT_EQ(left.size(), 1u);
  EXPECT_EQ(pool_->now().bytes, 0u);
}

TEST_F(KnownTokens, AreUsedAndReplacedOnManyThreads) {
  pool_ = pool_of(32 << 10);
  digest_memo one(pool_), other(pool_);
  std::vector<std::thread> threads;
  std::atomic<bool> wrong = false;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto hasher = make_token_hasher({.algorithm = hash_algorithm::sha256});
      std::mt19937 random(t);
      const extra_keys no_extra;
      for (int i = 0; i < 150; ++i) {
        auto tokens = prompt(1'000 * (random() % 8), 5);
        auto expected = hash_chunks(*hasher, {64, 64}, {}, tokens, {});
        prefix_hasher work(*hasher, {64, 64}, {}, tokens, no_extra, random() % 2 == 0 ? &one : &other);
        while (!work.step(200)) {
        }
        if (work.chunks() != expected)
          wrong = true;
      }
    });
  for (auto& thread : threads)
    thread.join();
  EXPECT_FALSE(wrong);
  EXPECT_GT(pool_->now().known, 0u);
  EXPECT_LE(pool_->now().bytes, pool_->bytes_max());
}

} // namespace
} // namespace terrace::test
