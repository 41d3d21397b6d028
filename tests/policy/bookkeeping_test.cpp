// Measures the memory for tracking an entry, with all tables, marks, candidates and the learner.
#include "tests/policy/policy_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <random>

namespace terrace::test {
namespace {

constexpr double bytes_max = 48;
constexpr uint64_t capacity = 150'000;
constexpr policy_time step = 5'000'000;

class Bookkeeping : public ::testing::TestWithParam<std::string_view> {
 protected:
  /// One request for a chain of `length` whole chunks that begins with `first`; absent ones are stored.
  void request(uint64_t first, uint64_t length) {
    chain_.clear();
    for (uint64_t n = first; n < first + length; ++n)
      chain_.push_back({n, n});
    auto number = tracker.begin_request(chain_, {.space = 1}, now += step);
    for (size_t i = 0; i < chain_.size(); ++i)
      tracker.insert(0, {chain_[i], i == 0 ? entry_key{} : chain_[i - 1], 1}, now, number);
    if (tracker.residents(0) > capacity)
      for (auto& v : tracker.victims(0, {tracker.residents(0) - capacity + 64, number}, now))
        tracker.erase(0, v.key);
    tracker.end_request(number, {.output_tokens = static_cast<uint32_t>(first % 700)}, now);
  }

  double bytes_per_entry() const {
    return static_cast<double>(tracker.bytes()) / static_cast<double>(tracker.tracked());
  }

  eviction_tracker tracker;
  policy_time now = 0;

 private:
  std::vector<entry_key> chain_;
};

TEST_P(Bookkeeping, TakesFewBytesWhereEveryResidentIsALeafAndUsedAgainAndAgain) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  use_policy(tracker, 0, GetParam());
  std::mt19937_64 random(seed);
  for (uint64_t n = 1; n <= capacity; ++n)
    request(n, 1);
  EXPECT_LE(bytes_per_entry(), bytes_max);
  for (uint64_t use = 0; use < 2 * capacity; ++use) {
    request(1 + random() % capacity, 1);
    if (use % 4096 == 0) {
      ASSERT_LE(bytes_per_entry(), bytes_max) << "after " << use << " uses";
    }
  }
  EXPECT_EQ(tracker.tracked(), capacity);
}

TEST_P(Bookkeeping, TakesFewBytesWhereChainsComeAndGo) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  use_policy(tracker, 0, GetParam());
  std::mt19937_64 random(seed);
  for (uint64_t turn = 0; turn < 40'000; ++turn) {
    uint64_t conversation = turn < 100 ? turn : turn - random() % 3'000 % turn;
    request(1 + conversation * 64, 1 + random() % 40);
    if (turn > 10'000 && turn % 512 == 0) {
      ASSERT_LE(bytes_per_entry(), bytes_max) << "after " << turn << " turns";
    }
  }
  EXPECT_GE(tracker.residents(0), capacity - 200);
}

TEST_P(Bookkeeping, TakesFewBytesWhereMostAreClearedRatherThanEvicted) {
  use_policy(tracker, 0, GetParam());
  uint64_t oldest = 1;
  for (uint64_t n = 1; n <= 6 * capacity; ++n) {
    request(n, 1);
    if (n - oldest >= capacity)
      tracker.erase(0, {oldest, oldest}), ++oldest;
    if (n > capacity && n % 16'384 == 0) {
      ASSERT_LE(bytes_per_entry(), bytes_max) << "after " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Bookkeeping, ::testing::ValuesIn(eviction_policy_names()),
                         [](const auto& which) { return std::string(which.param); });

} // namespace
} // namespace terrace::test
