#include "tests/policy/policy_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace::testing {
namespace {

entry_key key(uint64_t n) { return {n, n}; }

std::vector<uint64_t> order(eviction_policy& policy) {
  std::vector<uint64_t> numbers;
  for (auto& v : policy.victims(
           ~uint64_t{0}, [](entry_key) { return true; }, 0))
    numbers.push_back(v.key.high);
  return numbers;
}

std::unique_ptr<eviction_policy> three_roots(std::string_view name) {
  auto policy = make_eviction_policy(name).value();
  for (uint64_t n : {1, 2, 3})
    policy->insert({key(n), {}, 1}, n);
  return policy;
}

TEST(Lru, NamesTheLeastRecentlyUsedFirst) {
  auto policy = three_roots("lru");
  policy->hit(key(1), 4);
  EXPECT_EQ(order(*policy), (std::vector<uint64_t>{2, 3, 1}));
}

TEST(Lru, CountsASecondInsertAsAUse) {
  auto policy = three_roots("lru");
  policy->insert({key(1), {}, 1}, 4);
  EXPECT_EQ(order(*policy), (std::vector<uint64_t>{2, 3, 1}));
  EXPECT_EQ(policy->size(), 3u);
}

TEST(Lru, KeepsTheOrderOfUsesNotedAtOneTime) {
  auto policy = three_roots("lru");
  for (uint64_t n : {3, 2, 1})
    policy->hit(key(n), 4);
  EXPECT_EQ(order(*policy), (std::vector<uint64_t>{3, 2, 1}));
}

TEST(Fifo, IgnoresHits) {
  auto policy = three_roots("fifo");
  policy->hit(key(1), 4);
  policy->insert({key(2), {}, 1}, 5);
  EXPECT_EQ(order(*policy), (std::vector<uint64_t>{1, 2, 3}));
}

TEST(Fifo, CountsAReturnAsANewArrival) {
  auto policy = three_roots("fifo");
  policy->erase(key(1));
  policy->insert({key(1), {}, 1}, 4);
  EXPECT_EQ(order(*policy), (std::vector<uint64_t>{2, 3, 1}));
}

/// At every step the leaf with the oldest stamp goes; stamps are renewed by arrival, and by use for lru.
void expect_oldest_leaf_first(std::string_view name, bool uses_count) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  auto policy = make_eviction_policy(name).value();
  naive_forest forest;
  std::map<entry_key, int> stamp;
  for (int step = 0; step < 5'000; ++step) {
    uint64_t n = 1 + random() % 40;
    switch (random() % 4) {
      case 0:
      case 1: {
        entry_info entry{key(n), n == 1 ? entry_key{} : key(n / 2), 1};
        if (forest.insert(entry) || uses_count)
          stamp[key(n)] = step;
        policy->insert(entry, 0);
        break;
      }
      case 2:
        if (uses_count)
          stamp[key(n)] = step;
        policy->hit(key(n), 0);
        break;
      case 3: forest.erase(key(n)); policy->erase(key(n));
    }
    std::set<entry_key> gone;
    for (auto& v : policy->victims(
             10, [](entry_key) { return true; }, 0)) {
      auto leaves = forest.leaves(gone);
      auto oldest = std::min_element(leaves.begin(), leaves.end(),
                                     [&](entry_key a, entry_key b) { return stamp[a] < stamp[b]; });
      ASSERT_EQ(v.key, *oldest) << "step " << step;
      gone.insert(v.key);
    }
  }
}

TEST(Lru, AgreesWithTheNaiveModel) { expect_oldest_leaf_first("lru", true); }
TEST(Fifo, AgreesWithTheNaiveModel) { expect_oldest_leaf_first("fifo", false); }

} // namespace
} // namespace terrace::testing
