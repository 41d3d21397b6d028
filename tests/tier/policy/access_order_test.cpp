#include "tier/objects/object_batch.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"
#include "tier/objects/residency.hpp"
#include "tier/policy/group_policies.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

std::vector<size_t> order(const std::vector<char>& objects) { // k: a chunk, s: a state; others are absent
  std::vector<size_t> visited;
  in_access_order(
      objects.size(), [&](size_t i) { return objects[i] == 'k' || objects[i] == 's'; },
      [&](size_t i) { return objects[i] == 's'; }, [&](size_t i) { visited.push_back(i); });
  return visited;
}

constexpr uint16_t state_pool = 3;

/// Makes a chunk and its state for each of `count` chunks from the root on.
batch_ptr with_states(uint64_t count) {
  auto batch = std::make_shared<object_batch>();
  for (uint64_t n = 0; n < count; ++n) {
    object_key state = key_of(n);
    state.pool = state_pool;
    batch->keys.push_back(key_of(n));
    batch->keys.push_back(state);
    batch->parents.push_back(n == 0 ? entry_key{} : to_entry_key(key_of(n - 1)));
    batch->parents.push_back(to_entry_key(key_of(n)));
    batch->payload_bytes.insert(batch->payload_bytes.end(), 2, 4096);
  }
  batch->trailing.set(state_pool);
  return batch;
}

/// Returns the tier's notes of one kind, as numbers in the batch.
std::vector<size_t> told(residency& tier, const object_batch& objects, note_kind kind) {
  std::vector<size_t> order;
  for (const policy_note& note : tier.take_notes().notes)
    for (size_t i = 0; i < objects.size() && note.kind == kind; ++i)
      if (note.key == to_entry_key(objects.keys[i]))
        order.push_back(i);
  return order;
}

residency::acquired acquire(residency& tier, const batch_ptr& objects) {
  acquire_request request;
  request.objects = objects;
  auto wanted = tier.missing(request);
  std::vector<extent> granted;
  for (uint64_t size : wanted.sizes)
    granted.push_back({granted.size() * size, size});
  return tier.acquire(request, wanted, granted);
}

} // namespace

TEST(UseOrder, IsTheLastChunkFirst) {
  EXPECT_EQ(order({'k', 'k', '-', 'k'}), (std::vector<size_t>{3, 1, 0}));
  EXPECT_TRUE(order({}).empty());
}

TEST(UseOrder, StatesFollowFromTheFirstOn) {
  EXPECT_EQ(order({'k', 's', 'k', '-', 'k', 's'}), (std::vector<size_t>{4, 2, 0, 1, 5}));
  EXPECT_EQ(order({'s', 's', 's'}), (std::vector<size_t>{0, 1, 2}));
}

TEST(UseOrder, ATierTellsItOfInsertsHitsAndUses) {
  const std::vector<size_t> expected{4, 2, 0, 1, 3, 5};
  residency tier(tier_kind::host);
  auto objects = with_states(3);
  auto acquired = acquire(tier, objects);
  ASSERT_EQ(acquired.reserved.size(), 6u);
  auto published = tier.publish(acquired.places, false);
  EXPECT_EQ(told(tier, *objects, note_kind::insert), expected);
  tier.probe({objects, false, true});
  EXPECT_EQ(told(tier, *objects, note_kind::hit), expected);
  acquire(tier, objects);
  EXPECT_EQ(told(tier, *objects, note_kind::hit), expected);
  std::vector<object_id> ids;
  for (const object_place& place : published)
    ids.push_back(place.id);
  tier.use({ids});
  EXPECT_EQ(told(tier, *objects, note_kind::hit), expected);
}

TEST(UseOrder, WhatIsGoneIsPassedOver) {
  residency tier(tier_kind::host);
  auto objects = with_states(2);
  auto places = tier.publish(acquire(tier, objects).places, false);
  tier.discard({places[1].id});
  tier.take_notes();
  tier.use({{places[0].id, places[1].id, places[2].id, places[3].id, object_id{}}});
  EXPECT_EQ(told(tier, *objects, note_kind::hit), (std::vector<size_t>{2, 0, 3}));
}

// ---- which states leave first ----

/// A tier with a stored prompt of seven chunks and states, and the tier's policy.
struct StateOrder : ::testing::TestWithParam<std::string> {
  residency tier{tier_kind::host};
  group_policies policies{clock_source::told};
  batch_ptr objects = with_states(7);

  void SetUp() override {
    ASSERT_TRUE(policies.add_tier(tier_kind::host, GetParam()));
    tier.publish(acquire(tier, objects).places, false);
    tell();
    policies.end({UINT64_MAX, {}, 1'000'000'000}); // a client's clock: what follows is a second later
  }
  void tell() { policies.apply(tier.take_notes()); }
  void expect_to_leave(uint64_t first, uint64_t second) {
    uint64_t bytes = 2 * physical_bytes_for(4096);
    EXPECT_EQ(policies.victims({tier_kind::host, bytes, 0}).victims,
              (std::vector{state_of(first), state_of(second)}));
  }
  entry_key state_of(uint64_t chunk) const { return to_entry_key(objects->keys[2 * chunk + 1]); }
};

TEST_P(StateOrder, ThoseThatNoWindowNeedsLeaveFirst) { expect_to_leave(0, 1); }

TEST_P(StateOrder, AlsoAfterAUse) {
  tier.probe({objects, false, true});
  tell();
  expect_to_leave(0, 1);
}

TEST_P(StateOrder, AlsoAfterTheUseOfAnInference) {
  inference_begin use;
  use.inference = 77;
  use.objects = objects;
  policies.begin(use);
  policies.end({77, {}, {}});
  expect_to_leave(0, 1);
}

/// Excludes `fifo`, which ignores uses, and `s3fifo`, for which a single use does not count.
struct UsedStateOrder : StateOrder {};

TEST_P(UsedStateOrder, ThatOfAPrefixStays) {
  tier.probe({with_states(1), false, true}); // another conversation begins as this one did
  tell();
  expect_to_leave(1, 2);
}

/// Excludes `mru`, which evicts the most recently used object, and that is the needed state.
INSTANTIATE_TEST_SUITE_P(Policies, StateOrder,
                         ::testing::Values("lru", "lfu", "fifo", "slru", "s3fifo", "arc", "sieve", "lru2",
                                           "priority", "kmg"),
                         [](const auto& which) { return which.param; });
INSTANTIATE_TEST_SUITE_P(Policies, UsedStateOrder,
                         ::testing::Values("lru", "lfu", "slru", "arc", "sieve", "lru2", "priority", "kmg"),
                         [](const auto& which) { return which.param; });
