#include "tier/policy/group_policies.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace group_policies_test {

entry_key name(uint64_t number) { return to_entry_key(key_of(number)); }

struct seen_ages final : age_observer {
  size_t reused_entries = 0, evicted_entries = 0;
  void reused(tier_number, std::chrono::milliseconds, size_t entries) override { reused_entries += entries; }
  void evicted(tier_number, entry_key, std::chrono::milliseconds) override { ++evicted_entries; }
};

struct GroupPolicies : ::testing::Test {
  seen_ages ages;
  group_policies policies{clock_source::told, false, &ages};

  void SetUp() override { ASSERT_TRUE(policies.add_tier(tier_kind::host, "lru")); }

  /// Notes one entry for each number, without parents.
  void note(note_kind kind, std::vector<uint64_t> numbers, uint64_t inference = 0) {
    policy_notes notes{tier_kind::host, {}, inference};
    for (uint64_t number : numbers)
      notes.notes.push_back({kind, name(number), {}, 100});
    policies.apply(notes);
  }
  std::vector<entry_key> victims(uint64_t bytes = UINT64_MAX, uint64_t inference = 0) {
    return policies.victims({tier_kind::host, bytes, inference}).victims;
  }
  /// Sets the clients' clock to `seconds`.
  void time(uint64_t seconds) { policies.end({UINT64_MAX, {}, seconds * 1'000'000'000}); }
  /// Makes a chain of one object.
  static inference_begin inference(uint64_t number, uint64_t object, policy_time told = 0) {
    inference_begin what;
    what.inference = number;
    what.objects = chain(object, 1);
    what.told = told;
    return what;
  }
};

TEST_F(GroupPolicies, NotesMakeTheOrderOfVictims) {
  note(note_kind::insert, {1, 2, 3, 4});
  time(1);
  note(note_kind::hit, {1});
  note(note_kind::pin, {2});
  note(note_kind::erase, {3});
  EXPECT_EQ(victims(), (std::vector<entry_key>{name(4), name(1)}));
  note(note_kind::unpin, {2});
  EXPECT_EQ(victims().front(), name(2));
  EXPECT_EQ(ages.evicted_entries, 0u);
  note(note_kind::evict, {2});
  EXPECT_EQ(ages.evicted_entries, 1u);
  EXPECT_EQ(victims(), (std::vector<entry_key>{name(4), name(1)}));
}

TEST_F(GroupPolicies, VictimsSumUpToTheBytes) {
  note(note_kind::insert, {1, 2, 3});
  auto answer = policies.victims({tier_kind::host, 150, 0});
  EXPECT_EQ(answer.failure.code, errc::ok);
  EXPECT_EQ(answer.victims, (std::vector<entry_key>{name(1), name(2)}));
  EXPECT_EQ(answer.above.size(), 2u);
  EXPECT_EQ(answer.bytes, 200u);
}

TEST_F(GroupPolicies, ATierWithoutAPolicyHasNoVictims) {
  auto answer = policies.victims({tier_kind::disk, 1, 0});
  EXPECT_EQ(answer.failure.code, errc::internal);
  EXPECT_EQ(answer.failure.text, "no policy for tier disk");
}

TEST_F(GroupPolicies, AnInferenceIsOneAccessUntilItEnds) {
  note(note_kind::insert, {1, 2, 3});
  policies.begin(inference(7, 1, 1'000'000));
  EXPECT_FALSE(policies.recording());
  EXPECT_EQ(ages.reused_entries, 1u);
  policies.begin(inference(7, 2, 2'000'000)); // the inference has begun
  EXPECT_EQ(ages.reused_entries, 1u);
  EXPECT_EQ(victims(), (std::vector<entry_key>{name(2), name(3), name(1)}));
  policies.end({7, {}, 3'000'000});
  policies.end({7, {}, 3'000'000}); // has no effect
  policies.begin(inference(7, 2, 4'000'000));
  EXPECT_EQ(ages.reused_entries, 2u);
}

TEST_F(GroupPolicies, AnInferencesOwnObjectsAreSpared) {
  note(note_kind::insert, {1, 2});
  policies.begin(inference(7, 1, 1'000'000'000));
  time(2);
  note(note_kind::hit, {2});
  EXPECT_EQ(victims(UINT64_MAX, 8), (std::vector<entry_key>{name(1), name(2)}));
  EXPECT_EQ(victims(UINT64_MAX, 7), (std::vector<entry_key>{name(2), name(1)})) << "its own come last";
}

TEST_F(GroupPolicies, ALongChainIsRecordedInParts) {
  inference_begin what;
  what.inference = 7;
  what.objects = chain(0, chain_uses::step_objects + 1);
  policies.begin(what);
  ASSERT_TRUE(policies.recording());
  while (policies.record_more())
    EXPECT_TRUE(policies.recording());
  EXPECT_FALSE(policies.recording());
}

TEST_F(GroupPolicies, APolicyIsReplacedWithItsResidents) {
  note(note_kind::insert, {1, 2});
  EXPECT_EQ(policies.set_policy({tier_kind::host, "s3fifo"}).before, "lru");
  auto now = policies.report();
  ASSERT_EQ(now.tiers.size(), 1u);
  EXPECT_EQ(now.tiers[0].policy, "s3fifo");
  EXPECT_EQ(now.tiers[0].residents, 2u);
  EXPECT_EQ(now.tracked, 2u);
  auto unknown = policies.set_policy({tier_kind::host, "best"});
  EXPECT_EQ(unknown.failure.code, errc::bad_request);
  auto absent = policies.set_policy({tier_kind::disk, "lru"});
  EXPECT_EQ(absent.failure.code, errc::not_found);
  EXPECT_EQ(absent.failure.text, "this trust group has no disk tier");
}

TEST_F(GroupPolicies, AdmitsWhatBeatsTheNextVictim) {
  EXPECT_EQ(policies.admit({tier_kind::host, admission_rule::always, {{name(1), {}, 100}}}).admitted, 1u);
  // Without `remember`, an entry that left is unknown when it comes again.
  EXPECT_EQ(policies.admit({tier_kind::host, admission_rule::seen_twice, {{name(1), {}, 100}}}).admitted, 0u);
}

TEST(PolicyChange, IsDescribedForTheLog) {
  set_policy_request wanted{tier_kind::disk, "lru"};
  EXPECT_EQ(describe_change("default", wanted, {{}, "s3fifo"}),
            "group default: the policy of disk is lru now; it was s3fifo");
  EXPECT_EQ(describe_change("default", wanted, {{errc::not_found, "there is no disk"}, ""}),
            "group default: the policy of disk was not changed: there is no disk");
}

} // namespace group_policies_test
