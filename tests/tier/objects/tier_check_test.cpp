// Each kind of difference between a tier, its policy, its allocator and its tenants is found and named.
#include "tier/objects/tier_check.hpp"

#include "tests/tier/objects.hpp"
#include "tier/objects/tier_changes.hpp"
#include "tier/policy/group_policies.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace tier_check_test {

constexpr uint64_t page = 4096, each = 2 * page; // an object with its header

struct TierCheck : ::testing::Test {
  tier_changes tier{tier_kind::host};
  group_policies policy;
  std::unique_ptr<allocator> space = *make_allocator("free_list", {.capacity_bytes = 64 * each});

  TierCheck() { EXPECT_TRUE(policy.add_tier(tier_kind::host, "lru")); }

  residency& objects() { return tier.objects(); }

  std::vector<object_place> store(uint64_t first, size_t count, bool hold = false) {
    acquire_request request;
    request.objects = chain(first, count, page);
    auto wanted = objects().missing(request);
    auto taken = objects().acquire(request, wanted, *space->allocate(wanted.sizes));
    auto placed = objects().publish(taken.places, hold);
    tell_policy();
    return placed;
  }
  void tell_policy() { policy.apply(tier.drain_news().notes); }

  /// Returns all objects in one slice.
  slice_ptr slice(std::vector<std::string>& differences) {
    auto made = std::make_shared<checked_slice>();
    made->tier = tier_kind::host;
    objects().recount().begin();
    while (check_index(objects(), *made, differences)) {
    }
    const table_totals& kept = objects().table().totals();
    made->published_in_all = kept.readable;
    made->extents_in_all = kept.all.objects;
    made->bytes_in_all = kept.all.bytes;
    return made;
  }
  std::vector<std::string> check(table_totals::sum granted = {}) {
    std::vector<std::string> all;
    auto add = [&](std::vector<std::string> more) { all.insert(all.end(), more.begin(), more.end()); };
    auto now = slice(all);
    add(check_totals(objects()));
    add(policy.check({now}).differences);
    add(check_extents(*space, *now));
    add(check_space_totals(space->usage(), *now, granted));
    objects().recount().end();
    return all;
  }
  std::string only() {
    auto all = check();
    return all.size() == 1 ? all.front() : std::to_string(all.size()) + " differences";
  }
};

const std::string object_3 = "the object of space 1, pool 0, rank 0, chunk 0300000000000000";

TEST_F(TierCheck, FindsNothingInATierThatIsRight) {
  EXPECT_TRUE(check().empty());
  store(1, 5);
  auto held = store(10, 2, true);
  EXPECT_TRUE(check().empty()) << check().front();
  space->free(objects().release({held[0].id, held[1].id}));
  tell_policy();
  space->free(objects().discard({held[0].id}).freed);
  tell_policy();
  EXPECT_TRUE(check().empty()) << check().front();
}

TEST_F(TierCheck, NamesAnObjectThatThePolicyDoesNotKnow) {
  store(1, 5);
  policy.apply({tier_kind::host, {{note_kind::erase, to_entry_key(key_of(3)), {}, each}}, 0});
  auto all = check();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], object_3 + " can be found, and the policy does not know it");
  EXPECT_EQ(all[1], "the policy knows 4 objects, and lookups find 5");
}

TEST_F(TierCheck, NamesHowManyThePolicyKnowsTooMany) {
  store(1, 5);
  policy.apply({tier_kind::host, {{note_kind::insert, to_entry_key(key_of(77)), {}, each}}, 0});
  EXPECT_EQ(only(), "the policy knows 6 objects, and lookups find 5");
}

TEST_F(TierCheck, NamesAnObjectWhosePinHasNoHold) {
  store(1, 5);
  policy.apply({tier_kind::host, {{note_kind::pin, to_entry_key(key_of(3)), {}, each}}, 0});
  EXPECT_EQ(only(), object_3 + " has 0 holds, and the policy knows it as pinned, although it was not told");
}

TEST_F(TierCheck, NamesAHeldObjectThatThePolicyMayNameAgain) {
  store(3, 1, true);
  victim_answer named{.victims = {to_entry_key(key_of(3))}, .bytes = each};
  EXPECT_TRUE(objects().departures().keep_held(named));
  tell_policy();
  EXPECT_TRUE(check().empty()) << check().front();
  policy.apply({tier_kind::host, {{note_kind::unpin, to_entry_key(key_of(3)), {}, each}}, 0});
  EXPECT_EQ(only(), object_3 + " has 1 holds, and the policy knows it as not pinned, although it was told");
}

TEST_F(TierCheck, NamesAnObjectThatNobodyHoldsAndThePolicyWillNotName) {
  store(3, 1);
  objects().index()->table().set_pinned(*objects().table().find(key_of(3)), true);
  policy.apply({tier_kind::host, {{note_kind::pin, to_entry_key(key_of(3)), {}, each}}, 0});
  EXPECT_EQ(only(), object_3 + " has 0 holds, and the policy was told that it has to stay");
}

TEST_F(TierCheck, NamesAnObjectWhoseExtentIsFree) {
  auto placed = store(3, 1);
  space->free(std::vector{extent{placed[0].offset, each}});
  auto all = check();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], object_3 + " has 8192 bytes at 0, which are free for the allocator");
  EXPECT_EQ(all[1], "the allocator gave out 0 extents with 0 bytes, and the objects have 1 with 8192");
}

TEST_F(TierCheck, NamesAnObjectWhoseExtentHasAnotherSize) {
  auto placed = store(3, 1);
  space->free(std::vector{extent{placed[0].offset, each}});
  (void) space->allocate(std::vector<uint64_t>{page});
  auto all = check();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], object_3 + " has 8192 bytes at 0, where the allocator gave 4096");
}

TEST_F(TierCheck, NamesExtentsThatNoObjectHas) {
  store(1, 2);
  (void) space->allocate(std::vector<uint64_t>{page});
  EXPECT_EQ(only(), "the allocator gave out 3 extents with 20480 bytes, and the objects have 2 with 16384");
}

TEST_F(TierCheck, WhatIsOnItsWayToTheTierIsNoDifference) {
  store(1, 2);
  (void) space->allocate(std::vector<uint64_t>{each});
  EXPECT_TRUE(check({1, each}).empty());
}

TEST_F(TierCheck, NamesWhatATenantIsChargedTooMuch) {
  auto directory = std::make_shared<tenant_directory>();
  tenant_quota quota{"one", "1", false, {}};
  quota.in(tier_kind::host).max = quota_part{100 * each, false};
  directory->set_quotas({quota});
  directory->opened(space_id{1}, "1");
  auto quotas = std::make_shared<tenant_quotas>(tier_kind::host, directory, [] { return 100 * each; });
  objects().shares().charge(quotas);
  store(1, 3);
  EXPECT_TRUE(check().empty());
  quotas->took(space_id{1}, each);
  auto all = check();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], "space 1 is charged 32768 bytes, and its objects have 24576");
  EXPECT_EQ(all[1], "tenant one is charged 32768 bytes, and its objects have 24576");
}

} // namespace tier_check_test
