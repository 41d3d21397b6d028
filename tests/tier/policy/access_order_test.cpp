#include "tier/objects/object_place.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"
#include "tier/objects/residency.hpp"

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

TEST(UseOrder, ATierTellsItOfInsertsHitsHoldsAndUses) {
  const std::vector<size_t> expected{4, 2, 0, 1, 3, 5};
  residency tier(tier_kind::host);
  auto objects = with_states(3);
  auto acquired = acquire(tier, objects);
  ASSERT_EQ(acquired.reserved.size(), 6u);
  auto published = tier.publish(acquired.places, false);
  EXPECT_EQ(told(tier, *objects, note_kind::insert), expected);
  tier.probe(*objects, true, false);
  EXPECT_EQ(told(tier, *objects, note_kind::pin), expected);
  tier.probe(*objects, false, true);
  EXPECT_EQ(told(tier, *objects, note_kind::hit), expected);
  acquire(tier, objects);
  EXPECT_EQ(told(tier, *objects, note_kind::hit), expected);
  std::vector<object_id> ids;
  for (const object_place& place : published)
    ids.push_back(place.id);
  tier.use(ids);
  EXPECT_EQ(told(tier, *objects, note_kind::hit), expected);
}

TEST(UseOrder, WhatIsGoneIsPassedOver) {
  residency tier(tier_kind::host);
  auto objects = with_states(2);
  auto places = tier.publish(acquire(tier, objects).places, false);
  tier.discard({places[1].id});
  tier.take_notes();
  tier.use({places[0].id, places[1].id, places[2].id, places[3].id, object_id{}});
  EXPECT_EQ(told(tier, *objects, note_kind::hit), (std::vector<size_t>{2, 0, 3}));
}
