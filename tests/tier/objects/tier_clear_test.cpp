#include "tier/objects/tier_clear.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

void store(residency& tier, size_t count) {
  acquire_request request;
  request.objects = chain(0, count);
  auto wanted = tier.missing(request);
  std::vector<extent> granted;
  for (uint64_t offset = 0; uint64_t size : wanted.sizes) {
    granted.push_back({offset, size});
    offset += size;
  }
  tier.publish(tier.acquire(request, wanted, granted).places, false);
}

} // namespace

TEST(TierClear, RemovesObjectsPartByPartAndCountsThem) {
  residency tier(tier_kind::host);
  store(tier, 3 * residency::clear_objects_max);
  tier_clear clear({});
  size_t steps = 1;
  uint64_t freed = 0;
  for (; clear.step(tier); ++steps)
    freed += bytes_of(clear.take_freed());
  freed += bytes_of(clear.take_freed());
  EXPECT_GE(steps, 3u);
  auto removed = clear.removed();
  EXPECT_EQ(removed.objects, 3 * residency::clear_objects_max);
  EXPECT_EQ(removed.bytes, freed);
  EXPECT_EQ(removed.failure.code, errc::ok);
  EXPECT_EQ(tier.table().published(), 0u);
}

TEST(TierClear, ADurableTierForgetsUpToItsEpochAndContinuesWithTheNext) {
  residency tier(tier_kind::disk, durable_index(1));
  store(tier, 2);
  clear_request request{space_id{1}, space_fingerprint{}};
  tier_clear clear(request);
  EXPECT_FALSE(clear.step(tier));
  auto forget = clear.forget(tier);
  EXPECT_EQ(forget.space, space_id{1});
  EXPECT_TRUE(forget.fingerprint);
  EXPECT_EQ(forget.epoch, tier.durable()->epoch());
  forget_answer done;
  done.epoch = forget.epoch + 1;
  auto answer = clear.forgotten(tier, done);
  EXPECT_EQ(answer.objects, 2u);
  EXPECT_FALSE(answer.missed);
  EXPECT_EQ(tier.durable()->epoch(), done.epoch);
}

TEST(TierClear, OfPublishedObjectsAloneLeavesWhatIsBeingWritten) {
  residency tier(tier_kind::remote, durable_index(1));
  store(tier, 2);
  acquire_request request;
  request.objects = chain(2, 2);
  auto acquired = tier.acquire(request, tier.missing(request), {{1 << 20, 4096}, {2 << 20, 4096}});
  tier_clear clear({.space = space_id{1}, .published_only = true});
  EXPECT_FALSE(clear.step(tier));
  EXPECT_FALSE(clear.is_told(tier));
  EXPECT_EQ(clear.removed().objects, 2u);
  EXPECT_EQ(tier.table().published(), 0u);
  const auto published = tier.publish(acquired.places, false);
  EXPECT_EQ(count_present(published), 2u) << "under the token that is new";
  EXPECT_EQ(tier.table().published(), 2u);
}

TEST(TierClear, NothingOfTheSpaceIsConfirmedUntilItIsOver) {
  residency tier(tier_kind::host);
  auto confirmed = [&tier] {
    store(tier, 2); // what came to the tier after the walk
    auto stored = chain(0, 2);
    std::vector<object_id> ids;
    for (const object_key& key : stored->keys)
      ids.push_back(*tier.table().find(key));
    return tier.confirm(ids);
  };
  clear_order order;
  clear_request other{.space = space_id{2}, .in_progress = order.in_progress(0)};
  tier_clear(other).step(tier);
  EXPECT_EQ(confirmed(), (std::vector{true, true})) << "of another space";
  for (auto space : {std::optional(space_id{1}), std::optional<space_id>()}) {
    std::optional<clear_order> goes_on(std::in_place);
    EXPECT_EQ(goes_on->in_progress(1), nullptr) << "the others confirm";
    clear_request request{.space = space, .in_progress = goes_on->in_progress(0)};
    tier_clear clear(request);
    while (clear.step(tier)) {
    }
    request = {};
    EXPECT_EQ(confirmed(), (std::vector{false, false}));
    goes_on.reset();
    EXPECT_EQ(confirmed(), (std::vector{true, true})) << "also if nobody has ended the clear";
  }
}

TEST(TierClear, WhatIsStoredBehindItsLastVisitIsConfirmed) {
  residency tier(tier_kind::host);
  clear_order order;
  for (bool last : {false, true}) {
    tier_clear clear({.space = space_id{1}, .in_progress = order.in_progress(0)});
    while (clear.step(tier)) {
    }
    store(tier, 1);
    EXPECT_EQ(tier.confirm({*tier.table().find(chain(0, 1)->keys.front())}), std::vector{last});
  }
}

TEST(TierClear, ATierThatJoinsMeanwhileBeginsAnotherRound) {
  residency tier(tier_kind::host);
  clear_order order;
  auto ask = [&](size_t tiers) {
    auto next = order.next(tiers);
    if (next == size_t{0}) {
      tier_clear clear({.space = space_id{1}, .in_progress = order.in_progress(0)});
      while (clear.step(tier)) {
      }
    }
    return next;
  };
  auto confirmed = [&]() -> bool { // not the reference of a vector of bool
    store(tier, 1);
    return tier.confirm({*tier.table().find(chain(0, 1)->keys.front())}).front();
  };
  EXPECT_EQ(ask(1), 0U);
  EXPECT_FALSE(confirmed());
  EXPECT_EQ(ask(2), 0U);
  EXPECT_FALSE(confirmed()) << "the new tier is not cleared yet";
  EXPECT_EQ(ask(2), 1U);
  EXPECT_FALSE(confirmed());
  EXPECT_EQ(ask(2), 0U);
  EXPECT_TRUE(confirmed());
  EXPECT_FALSE(ask(2));
}

TEST(TierClear, NothingThatIsBeingRemovedIsConfirmedUntilItIsOver) {
  residency tier(tier_kind::host);
  std::optional<clear_order> goes_on(std::in_place);
  tier.remove({.objects = chain(0, 1), .in_progress = goes_on->in_progress(0)});
  store(tier, 2); // what came to the tier afterwards
  std::vector<object_id> ids;
  auto stored = chain(0, 2);
  for (const object_key& key : stored->keys)
    ids.push_back(*tier.table().find(key));
  EXPECT_EQ(tier.confirm(ids), (std::vector{false, true}));
  goes_on.reset();
  EXPECT_EQ(tier.confirm(ids), (std::vector{true, true})) << "also if nobody has ended the removal";
  goes_on.emplace();
  remove_request again{.objects = chain(0, 1), .in_progress = goes_on->in_progress(0)};
  tier.remove(again);
  tier.remove(again);
  store(tier, 1);
  EXPECT_EQ(tier.confirm({*tier.table().find(chain(0, 1)->keys.front())}), std::vector{true})
      << "the last removal is over";
}

TEST(TierClear, PathsThatDoNotKnowOfItAreNamedInTheAnswer) {
  residency tier(tier_kind::disk, durable_index(1));
  tier_clear clear({});
  clear.step(tier);
  forget_answer done;
  done.failure = {errc::internal, "a path hangs"};
  done.epoch = 7;
  done.missed.bytes[0] = 1;
  auto answer = clear.forgotten(tier, done);
  EXPECT_EQ(answer.failure.text, "a path hangs");
  ASSERT_TRUE(answer.missed);
  EXPECT_EQ(answer.missed->volume, done.missed);
  EXPECT_EQ(answer.missed->epoch, 7u);
}

TEST(TierClear, JournalsAreNotComparedWithWhatItHasRemovedUntilTheyAreTold) {
  residency tier(tier_kind::disk, durable_index(1));
  store(tier, 2 * residency::clear_objects_max);
  std::vector<uint64_t> paths = {1 << 30};
  tier.recount().tally_recorded(path_map(paths));
  journal_sums told = tier.recount().take_recorded().front();
  auto counted = [&tier] {
    tier.recount().begin();
    while (tier.recount().step(256)) {
    }
    journal_sums all = tier.recount().for_journals().front();
    tier.recount().end();
    return all;
  };
  EXPECT_TRUE(told.differences(counted()).empty());
  tier_clear clear({space_id{1}});
  ASSERT_TRUE(clear.step(tier));
  EXPECT_TRUE(told.differences(counted()).empty()) << "a part of them is gone";
  EXPECT_FALSE(clear.step(tier));
  EXPECT_TRUE(told.differences(counted()).empty()) << "they are told in a later turn";
  auto forget = clear.forget(tier);
  EXPECT_EQ(told.differences(counted()).size(), 1u) << "now they should have been told";
  told.forget(space_id{1}, forget.epoch + 1);
  EXPECT_TRUE(told.differences(counted()).empty());
}

TEST(TierClear, OneThatIsOverLeavesTheOthersInProgress) {
  residency tier(tier_kind::disk, durable_index(1));
  store(tier, 2 * residency::clear_objects_max);
  std::vector<uint64_t> paths = {1 << 30};
  tier.recount().tally_recorded(path_map(paths));
  journal_sums told = tier.recount().take_recorded().front();
  tier_clear all({});
  ASSERT_TRUE(all.step(tier));
  tier_clear other({space_id{2}});
  ASSERT_FALSE(other.step(tier));
  other.forget(tier);
  tier.recount().begin();
  while (tier.recount().step(256)) {
  }
  EXPECT_TRUE(told.differences(tier.recount().for_journals().front()).empty());
}
