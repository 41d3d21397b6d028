#include "policy/shadow_cache.hpp"

#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <random>

namespace terrace::test {
namespace shadow_cache_test {

entry_key key(uint64_t n) { return {n, n}; }

/// Makes the chain of these numbers, 10 bytes each.
std::vector<entry_info> chain(const std::vector<uint64_t>& numbers) {
  std::vector<entry_info> entries;
  for (uint64_t n : numbers)
    entries.push_back({key(n), entries.empty() ? entry_key{} : entries.back().key, 10});
  return entries;
}

std::unique_ptr<shadow_cache> shadow(std::string_view policy, uint64_t bytes) {
  return std::move(*shadow_cache::make(policy, bytes));
}

TEST(ShadowCache, StoresWhatItMissedAndHitsItTheNextTime) {
  auto cache = shadow("lru", 1'000);
  cache->use(chain({1, 2, 3}), 1);
  cache->use(chain({1, 2, 4, 5}), 2);
  EXPECT_EQ(cache->counts().requests, 2u);
  EXPECT_EQ(cache->counts().asked, 7u);
  EXPECT_EQ(cache->counts().hits, 2u);
  EXPECT_EQ(cache->counts().asked_bytes, 70u);
  EXPECT_EQ(cache->counts().hit_bytes, 20u);
  EXPECT_EQ(cache->residents(), 5u);
  EXPECT_EQ(cache->used_bytes(), 50u);
}

TEST(ShadowCache, EvictsInTheOrderOfItsPolicyAndSuffixFirst) {
  auto last_used = shadow("lru", 40), last_come = shadow("fifo", 40);
  for (auto* cache : {last_used.get(), last_come.get()}) {
    cache->use(chain({1, 2}), 1);
    cache->use(chain({3, 4}), 2);
    cache->use(chain({1, 2}), 3);
    cache->use(chain({5, 6}), 4);
    EXPECT_EQ(cache->counts().evicted, 2u);
    cache->use(chain({1, 2}), 5);
  }
  EXPECT_EQ(last_used->counts().hits, 4u);
  EXPECT_EQ(last_come->counts().hits, 2u);
}

TEST(ShadowCache, KeepsThePrefixThatFitsOfALongerChain) {
  auto cache = shadow("lru", 80);
  std::vector<uint64_t> numbers;
  for (uint64_t n = 1; n <= 20; ++n)
    numbers.push_back(n);
  cache->use(chain(numbers), 1);
  EXPECT_EQ(cache->residents(), 8u);
  cache->use(chain(numbers), 2);
  EXPECT_EQ(cache->counts().hits, 8u);
  cache->use(chain({21, 22}), 3);
  cache->use(chain(numbers), 4);
  EXPECT_EQ(cache->counts().hits, 8u + 6u);
  cache->use(chain(numbers), 5); // its own end does not take the place of its beginning
  EXPECT_EQ(cache->counts().hits, 8u + 6u + 8u);
}

TEST(ShadowCache, TakesNothingWhereNotOneObjectFits) {
  auto cache = shadow("lru", 9);
  cache->use(chain({1, 2}), 1);
  cache->use(chain({1, 2}), 2);
  EXPECT_EQ(cache->residents(), 0u);
  EXPECT_EQ(cache->counts().hits, 0u);
}

TEST(ShadowCache, CountsWhatLiesBehindAHoleAsMissed) {
  auto cache = shadow("lru", 1'000);
  std::vector<entry_info> orphan{{key(3), key(2), 10}};
  cache->use(orphan, 1);
  cache->use(orphan, 2);
  EXPECT_EQ(cache->counts().hits, 0u);
}

TEST(ShadowCache, CountsWhatLiesBehindAHoleAsMissedHoweverMuchOfItIsThere) {
  auto cache = shadow("lru", 1'000);
  std::vector<entry_info> end{{key(4), key(3), 10}, {key(5), key(4), 10}, {key(6), key(5), 10}};
  cache->use(end, 1);
  cache->use(chain({1, 2}), 2);
  cache->use(chain({1, 2, 3, 4, 5, 6}), 3);
  EXPECT_EQ(cache->counts().hits, 2u);
  EXPECT_EQ(cache->counts().hit_bytes, 20u);
}

TEST(ShadowCache, CountsEachObjectOfAChunkBehindItsOwnKind) {
  auto cache = shadow("lru", 1'000);
  // There are two objects per chunk: 11 and 12, then 21 and 22. Only the end is present of the second kind.
  std::vector<entry_info> whole{
      {key(11), {}, 10}, {key(12), {}, 10}, {key(21), key(11), 10}, {key(22), key(12), 10}};
  cache->use(std::vector{whole[0], whole[2]}, 1);
  cache->use(std::vector{whole[3]}, 2);
  cache->use(whole, 3);
  EXPECT_EQ(cache->counts().hits, 2u);
  cache->use(whole, 4);
  EXPECT_EQ(cache->counts().hits, 6u);
}

TEST(ShadowCache, ClearsWhatItIsToldToAndCallsThatNoEviction) {
  auto cache = shadow("lru", 1'000);
  cache->use(chain({1, 2, 3}), 1);
  cache->use(chain({11, 12}), 2);
  cache->clear([](entry_key key) { return key.high < 10; });
  EXPECT_EQ(cache->residents(), 2u);
  EXPECT_EQ(cache->used_bytes(), 20u);
  EXPECT_EQ(cache->counts().evicted, 0u);
  cache->use(chain({1, 2, 3}), 3);
  EXPECT_EQ(cache->counts().hits, 0u);
  cache->use(chain({11, 12}), 4);
  EXPECT_EQ(cache->counts().hits, 2u);
}

TEST(ShadowCache, NamesTheKnownPoliciesForAnUnknownOne) {
  auto made = shadow_cache::make("clock", 100);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::bad_request);
  EXPECT_NE(made.error().text.find("s3fifo"), std::string::npos);
}

class ShadowOf : public ::testing::TestWithParam<std::string_view> {};

TEST_P(ShadowOf, EveryPolicyStaysWithinItsCapacity) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  auto cache = shadow(GetParam(), 300);
  policy_time now = 0;
  for (int i = 0; i < 2'000; ++i) {
    std::vector<uint64_t> numbers;
    for (uint64_t n = 1 + random() % 200; n > 0; n /= 2)
      numbers.insert(numbers.begin(), n);
    now += random() % 1'000'000'000;
    if (random() % 2 == 0)
      cache->use(chain(numbers), now);
    else
      cache->end(cache->begin(chain(numbers), {}, now), {.output_tokens = 100}, now);
    ASSERT_LE(cache->used_bytes(), 300u);
    ASSERT_EQ(cache->used_bytes(), 10 * cache->residents());
  }
  EXPECT_GT(cache->counts().hits, 0u);
  EXPECT_LT(cache->counts().hits, cache->counts().asked);
}

INSTANTIATE_TEST_SUITE_P(Registry, ShadowOf, ::testing::ValuesIn(eviction_policy_names()),
                         [](const auto& which) { return std::string(which.param); });

} // namespace shadow_cache_test
} // namespace terrace::test
