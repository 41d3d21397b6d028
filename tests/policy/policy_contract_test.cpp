#include "tests/policy/policy_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

namespace terrace::testing {
namespace {

class PolicyContract : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PolicyContract, HoldsForRandomEvents) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  for (uint64_t keys : {3, 12, 60}) {
    auto policy = make_eviction_policy(GetParam()).value();
    auto broken = broken_promise(*policy, seed, 4'000, keys);
    EXPECT_FALSE(broken) << *broken << " with " << keys << " keys";
  }
}

TEST_P(PolicyContract, IgnoresUnknownKeys) {
  auto policy = make_eviction_policy(GetParam()).value();
  policy->hit({1, 1}, 0);
  policy->erase({1, 1});
  EXPECT_EQ(policy->size(), 0u);
}

TEST_P(PolicyContract, KeepsAChainsPrefixUntilItsSuffixHasGone) {
  auto policy = make_eviction_policy(GetParam()).value();
  for (uint64_t n = 1; n <= 4; ++n)
    policy->insert({{n, n}, n == 1 ? entry_key{} : entry_key{n - 1, n - 1}, 10}, n);
  auto named = policy->victims(
      25, [](entry_key) { return true; }, 9);
  ASSERT_EQ(named.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(named[i].key.high, 4 - i);
}

TEST_P(PolicyContract, NamesNobodyWhenAllAreHeld) {
  auto policy = make_eviction_policy(GetParam()).value();
  policy->insert({{1, 1}, {}, 10}, 0);
  EXPECT_TRUE(policy
                  ->victims(
                      1, [](entry_key) { return false; }, 0)
                  .empty());
  EXPECT_TRUE(policy
                  ->victims(
                      0, [](entry_key) { return true; }, 0)
                  .empty());
}

TEST_P(PolicyContract, StatesItsNameAndItsCost) {
  auto policy = make_eviction_policy(GetParam()).value();
  EXPECT_EQ(policy->name(), GetParam());
  EXPECT_GT(policy->bytes_per_entry(), sizeof(entry_key));
  EXPECT_LE(policy->bytes_per_entry(), 256u);
}

INSTANTIATE_TEST_SUITE_P(Registry, PolicyContract, ::testing::ValuesIn(eviction_policy_names()),
                         [](const auto& which) { return std::string(which.param); });

TEST(PolicyRegistry, NamesTheKnownOnesForAnUnknownName) {
  auto made = make_eviction_policy("clock");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::bad_request);
  for (auto name : eviction_policy_names())
    EXPECT_NE(made.error().text.find(name), std::string::npos);
}

// The canaries: each breaks one promise of a real policy, and the check must notice.
class canary : public eviction_policy {
 public:
  enum class flaw { none, prefix_first, ignores_filter, erases_victims, one_too_many, gives_up_early };
  explicit canary(flaw f) : flaw_(f) {}
  std::string_view name() const override { return "canary"; }
  void insert(const entry_info& entry, policy_time now) override {
    auto shown = entry;
    if (flaw_ == flaw::prefix_first)
      shown.parent = {};
    inner_->insert(shown, now);
  }
  void hit(entry_key key, policy_time now) override { inner_->hit(key, now); }
  void erase(entry_key key) override { inner_->erase(key); }
  std::vector<victim> victims(uint64_t bytes, const evictable_filter& may_leave, policy_time now) override {
    auto anybody = [](entry_key) { return true; };
    if (flaw_ == flaw::one_too_many)
      bytes += 10;
    if (flaw_ == flaw::gives_up_early)
      bytes = std::min<uint64_t>(bytes, 12);
    auto named = inner_->victims(bytes, flaw_ == flaw::ignores_filter ? anybody : may_leave, now);
    if (flaw_ == flaw::erases_victims)
      for (auto& v : named)
        inner_->erase(v.key);
    return named;
  }
  size_t size() const override { return inner_->size(); }
  size_t bytes_per_entry() const override { return inner_->bytes_per_entry(); }

 private:
  flaw flaw_;
  std::unique_ptr<eviction_policy> inner_ = make_eviction_policy("lru").value();
};

TEST(PolicyCanary, EveryBrokenPolicyFailsTheCheck) {
  auto check = [](canary::flaw flaw) {
    canary policy(flaw);
    return broken_promise(policy, 1, 4'000, 12);
  };
  EXPECT_FALSE(check(canary::flaw::none));
  EXPECT_TRUE(check(canary::flaw::prefix_first));
  EXPECT_TRUE(check(canary::flaw::ignores_filter));
  EXPECT_TRUE(check(canary::flaw::erases_victims));
  EXPECT_TRUE(check(canary::flaw::one_too_many));
  EXPECT_TRUE(check(canary::flaw::gives_up_early));
}

} // namespace
} // namespace terrace::testing
