#include "tests/policy/policy_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace::test {
namespace policy_contract_test {

entry_key key(uint64_t n) { return {n, n}; }

class PolicyContract : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PolicyContract, HoldsForRandomEvents) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  for (uint64_t keys : {3, 12, 60}) {
    policy_subject subject(GetParam(), seed);
    auto broken = broken_promise(subject, seed, 4'000, keys);
    EXPECT_FALSE(broken) << *broken << " with " << keys << " keys";
  }
}

TEST_P(PolicyContract, IgnoresUnknownKeys) {
  policy_subject subject(GetParam());
  auto& tracker = subject.tracker;
  tracker.hit(0, key(1), 0);
  tracker.pin(0, key(1));
  tracker.unpin(0, key(1));
  tracker.erase(0, key(1));
  tracker.end_request(7, {}, 0);
  tracker.insert(3, {key(1), {}, 1}, 0); // a tier without a policy
  EXPECT_EQ(tracker.residents(0) + tracker.residents(3) + tracker.tracked(), 0u);
  EXPECT_TRUE(tracker.victims(3, {1}, 0).empty());
}

TEST_P(PolicyContract, KeepsAChainsPrefixUntilItsSuffixHasGone) {
  policy_subject subject(GetParam());
  for (uint64_t n = 1; n <= 4; ++n)
    subject.tracker.insert(0, {key(n), n == 1 ? entry_key{} : key(n - 1), 10}, n);
  auto named = subject.tracker.victims(0, {25}, 9);
  ASSERT_EQ(named.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(named[i].key.high, 4 - i);
}

TEST_P(PolicyContract, NamesNobodyWhenAllArePinned) {
  policy_subject subject(GetParam());
  for (uint64_t n = 1; n <= 3; ++n)
    subject.tracker.insert(0, {key(n), {}, 10}, n), subject.tracker.pin(0, key(n));
  EXPECT_TRUE(subject.tracker.victims(0, {1}, 5).empty());
  subject.tracker.unpin(0, key(2));
  auto named = subject.tracker.victims(0, {1}, 6);
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].key, key(2));
  EXPECT_TRUE(subject.tracker.victims(0, {0}, 7).empty());
}

TEST_P(PolicyContract, NamesAgainWhatWasNotErased) {
  policy_subject subject(GetParam());
  for (uint64_t n = 1; n <= 20; ++n)
    subject.tracker.insert(0, {key(n), n % 2 == 1 ? entry_key{} : key(n - 1), 1}, n);
  for (int time = 0; time < 3; ++time)
    EXPECT_EQ(subject.tracker.victims(0, {20}, 30).size(), 20u);
}

TEST_P(PolicyContract, SparesTheRequestThatAsks) {
  policy_subject subject(GetParam());
  auto& tracker = subject.tracker;
  for (uint64_t n = 1; n <= 3; ++n)
    tracker.insert(0, {key(n), {}, 1}, n);
  std::vector chain{key(2)};
  auto request = tracker.begin_request(chain, {}, 9);
  tracker.insert(0, {key(4), key(2), 1}, 9, request);
  EXPECT_EQ(tracker.victims(0, {2, request}, 9).size(), 2u);
  auto named = tracker.victims(0, {9, request}, 9);
  ASSERT_EQ(named.size(), 4u); // its own entries go last, suffixes first
  EXPECT_TRUE(named[0].key == key(1) || named[0].key == key(3));
  EXPECT_TRUE(named[1].key == key(1) || named[1].key == key(3));
  EXPECT_EQ(named[2].key, key(4));
  EXPECT_EQ(named[3].key, key(2));
  EXPECT_EQ(tracker.victims(0, {9}, 9).size(), 4u); // this holds for nobody else
}

TEST_P(PolicyContract, GivesTheSameVictimsForTheSameSeedWheneverHoldsOfTheRequestThatAsksEnd) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  auto run = [&](bool holds) {
    std::mt19937_64 random(seed), when(seed + 1);
    eviction_tracker tracker(seed);
    use_policy(tracker, 0, GetParam());
    std::vector<entry_key> all;
    for (policy_time now = 0; now < 2'000'000'000'000; now += 1'000'000'000) {
      std::vector<entry_key> chain;
      for (uint64_t n = 1 + random() % 500; n > 0; n /= 2)
        chain.insert(chain.begin(), key(n));
      auto request = tracker.begin_request(chain, {}, now);
      for (size_t i = 0; holds && i < chain.size(); ++i)
        tracker.pin(0, chain[i]);
      size_t until = when() % 20;
      for (size_t i = 0; i < chain.size(); ++i)
        tracker.insert(0, {chain[i], i == 0 ? entry_key{} : chain[i - 1], 1}, now, request);
      while (tracker.residents(0) > 100)
        for (auto& v : tracker.victims(0, {4, request}, now)) {
          all.push_back(v.key), tracker.erase(0, v.key);
          if (until-- == 0)
            for (auto& held : chain)
              tracker.unpin(0, held);
        }
      for (auto& held : chain)
        tracker.unpin(0, held);
      tracker.end_request(request, {.output_tokens = static_cast<uint32_t>(random() % 500)}, now);
    }
    return all;
  };
  EXPECT_EQ(run(false), run(false));
  EXPECT_EQ(run(false), run(true));
}

TEST_P(PolicyContract, KeepsResidentsAndPinsWhenThePolicyIsChanged) {
  for (auto other : eviction_policy_names()) {
    policy_subject subject(GetParam());
    auto& tracker = subject.tracker;
    for (uint64_t n = 1; n <= 100; ++n)
      tracker.insert(0, {key(n), n == 1 ? entry_key{} : key(n / 2), 1}, n);
    tracker.pin(0, key(100));
    for (auto& v : tracker.victims(0, {10}, 101))
      tracker.erase(0, v.key);
    ASSERT_TRUE(tracker.set_policy(0, other));
    EXPECT_EQ(tracker.policy(0), other);
    EXPECT_EQ(tracker.residents(0), 90u);
    size_t above = 7; // 100, 50, 25, 12, 6, 3, 1 stay
    EXPECT_EQ(tracker.victims(0, {1'000}, 102).size(), 90 - above) << GetParam() << " to " << other;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, PolicyContract, ::testing::ValuesIn(eviction_policy_names()),
                         [](const auto& which) { return std::string(which.param); });

TEST(PolicyRegistry, NamesTheKnownOnesForAnUnknownName) {
  eviction_tracker tracker;
  auto set = tracker.set_policy(0, "clock");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, errc::bad_request);
  for (auto name : eviction_policy_names())
    EXPECT_NE(set.error().text.find(name), std::string::npos);
  EXPECT_TRUE(tracker.policy(0).empty());
  EXPECT_FALSE(tracker.set_policy(tiers_max, "lru"));
}

// The canaries: each breaks one promise of a real tracker, and the check must notice.
class canary : public policy_subject {
 public:
  enum class flaw { none, prefix_first, forgets_pins, erases_victims, one_too_many, gives_up_early };
  explicit canary(flaw f) : policy_subject("lru"), flaw_(f) {}
  void insert(tier_number tier, const entry_info& entry, policy_time now) override {
    auto shown = entry;
    if (flaw_ == flaw::prefix_first)
      shown.parent = {};
    tracker.insert(tier, shown, now);
  }
  void pin(tier_number tier, entry_key key) override {
    if (flaw_ != flaw::forgets_pins)
      tracker.pin(tier, key);
  }
  std::vector<victim> victims(tier_number tier, uint64_t bytes, policy_time now) override {
    if (flaw_ == flaw::one_too_many)
      bytes += 10;
    if (flaw_ == flaw::gives_up_early)
      bytes = std::min<uint64_t>(bytes, 12);
    auto named = tracker.victims(tier, {bytes}, now);
    if (flaw_ == flaw::erases_victims)
      for (auto& v : named)
        tracker.erase(tier, v.key);
    return named;
  }

 private:
  flaw flaw_;
};

TEST(PolicyCanary, EveryBrokenPolicyFailsTheCheck) {
  auto check = [](canary::flaw flaw) {
    canary subject(flaw);
    return broken_promise(subject, 1, 4'000, 12);
  };
  EXPECT_FALSE(check(canary::flaw::none)) << *check(canary::flaw::none);
  EXPECT_TRUE(check(canary::flaw::prefix_first));
  EXPECT_TRUE(check(canary::flaw::forgets_pins));
  EXPECT_TRUE(check(canary::flaw::erases_victims));
  EXPECT_TRUE(check(canary::flaw::one_too_many));
  EXPECT_TRUE(check(canary::flaw::gives_up_early));
}

} // namespace policy_contract_test
} // namespace terrace::test
