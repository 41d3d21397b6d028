// Tests what a tier admits under each rule.
#include "tests/policy/policy_contract.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

constexpr policy_time second = 1'000'000'000;

entry_info entry(uint64_t n, uint64_t parent = 0) { return {{n, n}, {parent, parent}, 1}; }

/// Tier 0 is host memory, and tier 1 is asked.
struct Admission : ::testing::Test {
  size_t admitted(admission_rule rule, const std::vector<entry_info>& entries) {
    return tracker.admitted(1, entries, rule, now);
  }
  void use(std::string_view policy) {
    use_policy(tracker, 0, policy);
    use_policy(tracker, 1, policy);
  }
  void request(uint64_t n) {
    std::vector chain{entry_key{n, n}};
    tracker.end_request(tracker.begin_request(chain, {}, now), {}, now);
  }
  /// Entries 0 to 49 are used every ten seconds; everything else is used once.
  void learn() {
    for (uint64_t n = 0; n < 4'000; ++n) {
      now += second / 10;
      request(1'000 + n);
      request(1 + n % 50);
    }
  }

  eviction_tracker tracker{0, true};
  policy_time now = 0;
};

TEST_F(Admission, AlwaysTakesWhatNobodyKnows) {
  use("lru");
  EXPECT_EQ(admitted(admission_rule::always, {entry(1), entry(2, 1)}), 2u);
}

TEST_F(Admission, ATierWithoutAPolicyTakesNothing) {
  use_policy(tracker, 0, "lru");
  EXPECT_EQ(admitted(admission_rule::always, {entry(1)}), 0u);
}

TEST_F(Admission, SeenTwiceTakesWhatTwoRequestsAskedForUpToTheFirstThatOneDid) {
  use("lru");
  std::vector<entry_key> shorter{{1, 1}, {2, 2}}, longer{{1, 1}, {2, 2}, {3, 3}, {4, 4}};
  tracker.begin_request(shorter, {}, 1);
  tracker.begin_request(longer, {}, 2);
  EXPECT_EQ(admitted(admission_rule::seen_twice, {entry(1), entry(2, 1), entry(3, 2), entry(4, 3)}), 2u);
  EXPECT_EQ(admitted(admission_rule::seen_twice, {entry(99)}), 0u);
  tracker.insert(1, entry(2, 1), 3);
  EXPECT_EQ(admitted(admission_rule::seen_twice, {entry(3, 2), entry(4, 3)}), 1u) << "it continues 2";
}

TEST_F(Admission, EverythingBeatsTheVictimOfAPolicyThatComparesNothing) {
  use("lru");
  tracker.insert(1, entry(1), 1);
  EXPECT_EQ(admitted(admission_rule::beats_victim, {entry(2), entry(3, 2)}), 2u);
}

TEST_F(Admission, BeatsVictimRefusesWhatIsWorthLessThanTheLeastOfTheTier) {
  use("kmg");
  learn();
  for (uint64_t n = 1; n <= 50; ++n)
    tracker.insert(1, entry(n), now);
  request(99'999);
  EXPECT_EQ(admitted(admission_rule::beats_victim, {entry(99'999)}), 0u);
  tracker.erase(1, {20, 20});
  EXPECT_EQ(admitted(admission_rule::beats_victim, {entry(20), entry(99'999, 20)}), 1u) << "20 comes back";
}

TEST_F(Admission, BeatsVictimTakesAnythingWhereNothingMayLeave) {
  use("kmg");
  learn();
  EXPECT_EQ(admitted(admission_rule::beats_victim, {entry(99'999)}), 1u);
  tracker.insert(1, entry(1), now);
  tracker.pin(1, {1, 1});
  EXPECT_EQ(admitted(admission_rule::beats_victim, {entry(99'999)}), 1u)
      << "the tier will say that it is full";
}

TEST_F(Admission, BeatsVictimTakesWhatThePolicyHasNotHeardOfYet) {
  use("kmg");
  learn();
  for (uint64_t n = 1; n <= 50; ++n)
    tracker.insert(1, entry(n), now);
  EXPECT_EQ(admitted(admission_rule::beats_victim, {entry(77'777), entry(77'778, 77'777)}), 2u);
}

} // namespace
} // namespace terrace::test
