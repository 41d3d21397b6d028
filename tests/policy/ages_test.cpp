// Tests what an eviction_tracker reports about the ages of accesses.
#include "tests/policy/policy_contract.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace terrace::test {
namespace ages_test {

using namespace std::chrono_literals;

entry_key key(uint64_t n) { return {n, n}; }
constexpr policy_time at(uint64_t seconds) { return seconds * 1'000'000'000; }

struct recorded : age_observer {
  using event = std::pair<tier_number, int64_t>; ///< tier and seconds
  std::vector<event> reuses, evictions;
  void reused(tier_number tier, std::chrono::milliseconds after, size_t entries) override {
    reuses.insert(reuses.end(), entries, {tier, (after + 500ms) / 1s});
  }
  void evicted(tier_number tier, entry_key, std::chrono::milliseconds age) override {
    evictions.emplace_back(tier, (age + 500ms) / 1s);
  }
};

struct Ages : ::testing::Test {
  Ages() {
    use_policy(tracker, 0, "lru");
    use_policy(tracker, 1, "lru");
    tracker.set_observer(&seen);
  }
  recorded seen;
  eviction_tracker tracker;
};

TEST_F(Ages, AreThoseSinceTheLastAccessInEachTierThatHasTheEntry) {
  std::vector chain{key(1), key(2)};
  auto request = tracker.begin_request(chain, {}, at(1));
  for (tier_number tier : {tier_number{0}, tier_number{1}})
    tracker.insert(tier, {key(1), {}, 1}, at(1), request);
  tracker.insert(0, {key(2), key(1), 1}, at(1), request);
  EXPECT_TRUE(seen.reuses.empty());
  tracker.begin_request(chain, {}, at(8));
  EXPECT_EQ(seen.reuses, (std::vector<recorded::event>{{0, 7}, {0, 7}, {1, 7}}));
  tracker.evict(0, key(2));
  tracker.hit(1, key(1), at(20));
  tracker.evict(1, key(1));
  EXPECT_EQ(seen.evictions, (std::vector<recorded::event>{{0, 0}, {1, 0}})); // both were just accessed
}

TEST_F(Ages, CountEvictionsAndNothingElse) {
  for (uint64_t n : {1, 2, 3})
    tracker.insert(0, {key(n), {}, 1}, at(n));
  tracker.hit(0, key(3), at(33));
  tracker.erase(0, key(1)); // cleared
  tracker.evict(0, key(2));
  tracker.evict(0, key(2)); // it is gone
  tracker.evict(0, key(9));
  EXPECT_EQ(seen.evictions, (std::vector<recorded::event>{{0, 31}}));
}

} // namespace ages_test
} // namespace terrace::test
