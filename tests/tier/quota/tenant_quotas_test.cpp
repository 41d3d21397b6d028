// The bytes of tenants are counted correctly, and their bounds and shares hold.
#include "tier/quota/tenant_quotas.hpp"

#include "tests/tier/objects.hpp"
#include "tier/objects/residency.hpp"
#include "tier/objects/tier_changes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t page = 4096, each = 2 * page; // an object with its header

tenant_quota quota(std::string name, std::string salt, std::optional<uint64_t> max, uint64_t share = 0,
                   bool rule = false) {
  tenant_quota made{std::move(name), std::move(salt), rule, {}};
  if (max)
    made.in(tier_kind::host).max = quota_part{*max * each, false};
  made.in(tier_kind::host).guaranteed = {share * each, false};
  return made;
}

object_key key_in(uint32_t space, uint64_t number) {
  object_key made = key_of(number);
  made.space = space_id{space};
  return made;
}

acquire_request one_object(uint32_t space, uint64_t number) {
  auto batch = std::make_shared<object_batch>();
  batch->keys.push_back(key_in(space, number));
  batch->parents.emplace_back();
  batch->payload_bytes.push_back(page);
  acquire_request request;
  request.objects = batch;
  return request;
}

struct TenantQuotas : ::testing::Test {
  uint64_t capacity = 100 * each;
  std::shared_ptr<tenant_directory> directory = std::make_shared<tenant_directory>();
  std::shared_ptr<tenant_states> board = std::make_shared<tenant_states>();
  std::shared_ptr<tenant_quotas> quotas;
  residency objects{tier_kind::host};
  uint64_t next_offset = 0;

  TenantQuotas() {
    directory->set_quotas({quota("one", "1", 4), quota("two", "2", {}, 3), quota("rest", "", 2, 0, true)});
    for (uint32_t space = 1; space <= 4; ++space)
      directory->opened(space_id{space}, std::to_string(space));
    quotas = std::make_shared<tenant_quotas>(
        tier_kind::host, directory, [this] { return capacity; }, board);
    objects.shares().charge(quotas);
  }

  object_place reserve(uint32_t space, uint64_t number) {
    auto request = one_object(space, number);
    auto wanted = objects.missing(request);
    if (wanted.sizes.empty())
      return {}; // the object is there
    auto taken = objects.acquire(request, wanted, {{next_offset, each}});
    next_offset += each;
    return taken.places.front();
  }
  object_place store(uint32_t space, uint64_t number) {
    auto place = reserve(space, number);
    objects.publish({place}, false);
    return place;
  }
  tenant_id tenant(uint32_t space) { return quotas->tenant_of(space_id{space}); }
  uint64_t used(uint32_t space) { return quotas->used_by(tenant(space)) / each; }
  void clear(std::optional<space_id> space) {
    residency::clear_walk walk{.space = space};
    while (objects.clear_step(walk)) {
    }
  }
  victim_answer named(std::vector<std::pair<uint32_t, uint64_t>> which) {
    victim_answer answer;
    for (auto [space, number] : which) {
      answer.victims.push_back(to_entry_key(key_in(space, number)));
      answer.above.emplace_back();
      answer.bytes += each;
    }
    return answer;
  }
};

} // namespace

TEST_F(TenantQuotas, ReservedObjectsCountUntilTheirSpaceIsFreed) {
  auto place = reserve(1, 1);
  EXPECT_EQ(used(1), 1U);
  objects.abandon({place.id});
  EXPECT_EQ(used(1), 0U);
  place = store(1, 2);
  auto held = objects.probe({one_object(1, 2).objects, true, false}).places;
  objects.discard({place.id});
  EXPECT_EQ(used(1), 1U) << "somebody holds it";
  objects.release({held.front().id});
  EXPECT_EQ(used(1), 0U);
}

TEST_F(TenantQuotas, WhatATierBringsWithItCounts) {
  residency found{tier_kind::host};
  auto request = one_object(1, 1);
  found.publish(found.acquire(request, found.missing(request), {{0, each}}).places, false);
  auto others = std::make_shared<tenant_quotas>(tier_kind::host, directory, [] { return 100 * each; });
  found.shares().charge(others);
  EXPECT_EQ(others->used_by(others->tenant_of(space_id{1})), each);
}

TEST_F(TenantQuotas, ABookingCountsLikeBytes) {
  using room = tenant_quotas::room;
  EXPECT_EQ(quotas->room_for(tenant(1), 4 * each), room::free);
  EXPECT_EQ(quotas->room_for(tenant(1), 4 * each + 1), room::never);
  quotas->book(tenant(1), 2 * each);
  store(1, 1);
  EXPECT_EQ(quotas->room_for(tenant(1), each), room::free);
  EXPECT_EQ(quotas->room_for(tenant(1), 2 * each), room::full);
  EXPECT_EQ(quotas->missing_for(tenant(1), 2 * each), each);
  quotas->unbook(tenant(1), 2 * each);
  EXPECT_EQ(quotas->room_for(tenant(1), 3 * each), room::free);
  EXPECT_EQ(quotas->room_for(tenant(2), 1000 * each), room::free) << "it has no bound";
}

TEST_F(TenantQuotas, ASpaceThatIsOpenedLaterCountsFromItsFirstUse) {
  store(9, 1);
  store(9, 2);
  store(9, 3);
  EXPECT_TRUE(quotas->in_excess().empty());
  directory->opened(space_id{9}, "somebody");
  EXPECT_EQ(used(9), 3U);
  EXPECT_EQ(quotas->in_excess(), std::vector<tenant_id>{tenant(9)}) << "the rule allows two";
}

TEST_F(TenantQuotas, ChangedQuotasApplyToWhatIsThere) {
  for (uint64_t i = 0; i < 4; ++i)
    store(1, i);
  ASSERT_TRUE(
      directory->change("one", tier_kind::host, {quota_part{1, true}, {}, false}, {0, capacity, 0, 0}));
  quotas->refresh();
  EXPECT_EQ(quotas->max_of(tenant(1)), each) << "one percent";
  EXPECT_EQ(quotas->in_excess().size(), 1U);
  capacity *= 4;
  EXPECT_TRUE(quotas->in_excess().empty()) << "of a larger tier";
  directory->set_quotas({});
  quotas->refresh();
  EXPECT_EQ(tenant(1), tenant_id{});
  EXPECT_TRUE(quotas->report().empty());
  EXPECT_TRUE(board->lines().empty());
  clear({});
}

TEST_F(TenantQuotas, OthersLeaveAGuaranteedShare) {
  for (uint64_t i = 0; i < 5; ++i)
    store(2, i);
  store(1, 10);
  auto first = named({{2, 0}, {2, 1}, {2, 2}, {1, 10}});
  EXPECT_TRUE(objects.shares().keep(first, tenant(1)));
  EXPECT_EQ(first.victims.size(), 3U) << "two of five, and another tenant's";
  EXPECT_EQ(first.bytes, 4 * each) << "all that were named";
  auto notes = objects.take_notes().notes;
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes.back().kind, note_kind::pin);
  EXPECT_EQ(notes.back().key, to_entry_key(key_in(2, 2)));
  objects.departures().evict(first.victims);
  auto second = named({{2, 3}, {2, 4}});
  objects.shares().keep(second, {});
  EXPECT_TRUE(second.victims.empty());
  auto own = named({{2, 3}, {2, 4}});
  EXPECT_FALSE(objects.shares().keep(own, tenant(2))) << "for itself";
}

TEST_F(TenantQuotas, WhatATenantTakesBeyondItsShareMayBeNamedAgain) {
  for (uint64_t i = 0; i < 3; ++i)
    store(2, i);
  auto all = named({{2, 0}, {2, 1}, {2, 2}});
  objects.shares().keep(all, {});
  objects.take_notes();
  store(2, 3);
  std::vector<entry_key> unpinned;
  for (const policy_note& one : objects.take_notes().notes)
    if (one.kind == note_kind::unpin)
      unpinned.push_back(one.key);
  EXPECT_EQ(unpinned, std::vector<entry_key>{to_entry_key(key_in(2, 0))})
      << "the least valuable, as many bytes";
}

TEST_F(TenantQuotas, SharesAreGuaranteedAsFarAsTheTierGoes) {
  directory->set_quotas({quota("many", "", {}, 60, true)});
  quotas->refresh();
  store(1, 1);
  store(2, 1);
  EXPECT_EQ(quotas->guaranteed_to(tenant(1)) + quotas->guaranteed_to(tenant(2)), 60 * each);
}

TEST_F(TenantQuotas, OnlyObjectsOfTheTenantThatWereThereWhenAskedMayLeaveForIt) {
  auto old = store(1, 1);
  store(1, 2);
  store(2, 3);
  objects.shares().watch_new();
  auto answer = named({{2, 3}, {1, 1}, {1, 2}});
  objects.discard({old.id});
  store(1, 1); // stored again under the same key
  objects.shares().keep_only_of(tenant(1), answer);
  EXPECT_EQ(answer.victims, std::vector<entry_key>{to_entry_key(key_in(1, 2))});
}

TEST_F(TenantQuotas, ARoundForATenantTakesItsOwnInOrderAndNothingIfThatIsNotEnough) {
  tier_changes tier(tier_kind::host);
  tier.objects().shares().charge(quotas);
  auto add = [&](uint32_t space, uint64_t number) {
    auto request = one_object(space, number);
    auto taken = tier.objects().acquire(request, tier.objects().missing(request), {{next_offset, each}});
    next_offset += each;
    tier.objects().publish(taken.places, false);
  };
  for (uint64_t i = 0; i < 3; ++i) {
    add(1, i);
    add(2, 10 + i);
  }
  auto run = [&](uint64_t missing, uint64_t wanted) {
    auto round = std::make_shared<eviction_round>();
    round->ask_own(tenant(1), missing, wanted, 0);
    tier.begin(std::move(round));
    uint64_t bytes = 0;
    for (;;) {
      uint64_t asked = tier.question().bytes;
      auto answer = named({{2, 10}, {1, 0}, {2, 11}, {1, 1}, {1, 2}, {2, 12}});
      while (answer.bytes - each >= asked && answer.victims.size() > 1) {
        answer.victims.pop_back();
        answer.above.pop_back();
        answer.bytes -= each;
      }
      tier.choose(answer);
      if (auto done = tier.evict()) {
        EXPECT_TRUE(done->own);
        bytes += done->bytes;
      }
      if (auto ended = tier.take_ended()) {
        EXPECT_EQ(ended->failed(), bytes == 0);
        return bytes / each;
      }
    }
  };
  EXPECT_EQ(run(each, each), 1U);
  EXPECT_EQ(tier.objects().table().published(), 5U);
  EXPECT_EQ(run(3 * each, 3 * each), 0U) << "two are left";
  EXPECT_EQ(run(each, 5 * each), 2U);
  EXPECT_EQ(used(2), 3U);
}

/// Random changes of what tenants have, compared with a recount of the table.
TEST_F(TenantQuotas, AreWhatARecountGives) {
  auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  auto any = [&](uint32_t n) { return std::uniform_int_distribution<uint32_t>(0, n - 1)(random); };
  std::vector<object_place> reserved, stored, held;
  auto take = [&](std::vector<object_place>& from) {
    size_t i = any(static_cast<uint32_t>(from.size()));
    std::swap(from[i], from.back());
    auto taken = from.back();
    from.pop_back();
    return taken;
  };
  for (int step = 0; step < 5000; ++step) {
    uint32_t space = 1 + any(6);
    switch (any(10)) {
      case 0:
      case 1:
      case 2:
        if (auto place = reserve(space, any(50)); place.present())
          reserved.push_back(place);
        break;
      case 3:
      case 4:
        if (!reserved.empty()) {
          stored.push_back(take(reserved));
          objects.publish({stored.back()}, false);
        }
        break;
      case 5:
        if (!reserved.empty())
          objects.abandon({take(reserved).id});
        break;
      case 6:
        if (!stored.empty())
          objects.discard({take(stored).id});
        break;
      case 7: {
        auto found = objects.probe({one_object(space, any(50)).objects, true, false});
        if (found.hits != 0)
          held.push_back(found.places.front());
        break;
      }
      case 8:
        if (!held.empty())
          objects.release({take(held).id});
        break;
      default:
        if (any(20) == 0)
          clear(space_id{space});
        else if (any(10) == 0)
          directory->opened(space_id{5}, "5");
        else if (any(10) == 0) {
          directory->set_quotas({quota("rest", "", 2, 0, true), quota("one", "1", any(9), 0)});
          quotas->refresh();
        } else
          objects.departures().evict({to_entry_key(key_in(space, any(50)))});
    }
    std::map<uint32_t, uint64_t> counted;
    objects.table().for_each([&](const resident& object) {
      counted[static_cast<uint32_t>(object.key().space)] += object.physical_bytes();
    });
    std::map<tenant_id, uint64_t> sums;
    for (uint32_t s = 1; s <= 6; ++s)
      if (tenant(s) != tenant_id{})
        sums[tenant(s)] += counted[s];
    for (auto [whose, bytes] : sums)
      ASSERT_EQ(quotas->used_by(whose), bytes) << "step " << step;
    uint64_t shown = 0, all = 0;
    for (const auto& [name, line] : board->lines())
      shown += line->used_bytes;
    for (auto [whose, bytes] : sums)
      all += bytes;
    ASSERT_EQ(shown, all) << "step " << step;
  }
}
