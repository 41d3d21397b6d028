#include "policy/eviction_ledger.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

namespace terrace::testing {
namespace {

/// Uses by class, through a ledger with kmg. Times in seconds.
struct learner {
  learner() {
    if (!ledger.set_policy(0, "kmg"))
      throw std::invalid_argument("kmg");
  }
  request_number request(std::initializer_list<uint64_t> chain, uint64_t at, uint32_t turn = 0) {
    std::vector<entry_key> keys;
    for (uint64_t n : chain)
      keys.push_back({n, n});
    return ledger.begin_request(keys, {.turn = turn}, at * 1'000'000'000);
  }
  /// Open uses of a class.
  double open(uint32_t uses, uint32_t starts, std::optional<uint32_t> output = std::nullopt) {
    size_t of_class = use_history::class_for(uses, starts, output);
    auto& returns = ledger.model()->returns(of_class);
    return ledger.model()->reached(of_class)[0] - std::accumulate(returns.begin(), returns.end(), 0.0);
  }

  eviction_ledger ledger;
};

TEST(UseHistory, ClassesByCountAndAnswer) {
  learner test;
  auto first = test.request({1, 2}, 10);
  EXPECT_EQ(test.open(1, 1), 2);
  test.ledger.end_request(first, {.output_tokens = 10}, 11'000'000'000);
  EXPECT_EQ(test.open(1, 1), 0);
  EXPECT_EQ(test.open(1, 1, 10), 2);
  auto second = test.request({1, 2, 3}, 20);
  EXPECT_EQ(test.open(2, 1), 2);
  EXPECT_EQ(test.open(1, 1), 1);
  test.ledger.end_request(second, {.output_tokens = 1'000}, 11'000'000'000);
  EXPECT_EQ(test.open(2, 1, 1'000), 2);
  EXPECT_EQ(test.open(2, 1), 0);
}

TEST(UseHistory, StaysInThePoolOfAllAnswersWhenNoneIsTold) {
  learner test;
  auto first = test.request({1, 2}, 10);
  test.ledger.end_request(first, {}, 11'000'000'000);
  EXPECT_EQ(test.open(1, 1), 2);
  for (uint32_t output : {10, 100, 1'000})
    EXPECT_EQ(test.open(1, 1, output), 0);
}

TEST(UseHistory, LeavesWhatALaterRequestUsedToThat) {
  learner test;
  auto first = test.request({1, 2}, 10);
  test.request({1, 5}, 12);
  test.ledger.end_request(first, {.output_tokens = 10}, 13'000'000'000);
  EXPECT_EQ(test.open(1, 1, 10), 1); // 2 alone
}

TEST(UseHistory, TakesAPrefixOfSeveralConversationsForATrunk) {
  learner test;
  test.request({1, 2}, 10);
  test.request({1, 3}, 20); // one successor so far: may be the conversation that went on
  EXPECT_EQ(test.open(0, 2), 0);
  test.request({1, 4}, 30);
  EXPECT_EQ(test.open(0, 2), 1);
  for (uint64_t n = 5; n < 7; ++n)
    test.request({1, n}, 10 * n);
  EXPECT_EQ(test.open(0, 2), 0);
  EXPECT_EQ(test.open(0, 4), 1); // by powers of two
}

TEST(UseHistory, BelievesTheTurnThatAClientTells) {
  learner test;
  test.request({1, 2}, 10, 1);
  test.request({1, 3}, 20, 1);
  EXPECT_EQ(test.open(0, 2), 1);
  for (uint64_t n = 4; n < 10; ++n)
    test.request({1, n}, 10 * n, 5);
  EXPECT_EQ(test.open(0, 2), 1); // no further starts
}

} // namespace
} // namespace terrace::testing
