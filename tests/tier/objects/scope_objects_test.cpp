#include "tier/objects/scope_objects.hpp"

#include "tests/index/spaces.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace scope_objects_test {

digest chunk(uint64_t number) { return key_of(number).chunk; }

opened_space space() {
  auto spec = terrace::test::mixed_space();
  return {space_id{9}, spec, spec.fingerprint()};
}

std::vector<digest> chunks(size_t count) {
  std::vector<digest> out;
  for (uint64_t n = 1; n <= count; ++n)
    out.push_back(chunk(n));
  return out;
}

entry_key name(uint16_t pool, uint16_t rank, uint64_t number) {
  return to_entry_key({space_id{9}, pool, rank, chunk(number)});
}

scope_objects making(const opened_space& in, std::vector<digest> chunks, const std::optional<digest>& before,
                     const transfer_scope& scope, uint16_t rank) {
  return scope_objects({std::make_shared<const opened_space>(in),
                        std::make_shared<const std::vector<digest>>(std::move(chunks)), before, scope, rank});
}

batch_ptr objects_of(const opened_space& in, std::vector<digest> chunks, const std::optional<digest>& before,
                     const transfer_scope& scope, uint16_t rank) {
  auto objects = making(in, std::move(chunks), before, scope, rank);
  while (!objects.step()) {
  }
  return objects.take();
}

TEST(ScopeObjects, GoChunkByChunkAndPoolByPoolOnOneRank) {
  auto batch = objects_of(space(), chunks(3), std::nullopt, {{1, 2}, {0, 1, 2}}, 1);
  ASSERT_EQ(batch->size(), 6u);
  EXPECT_EQ(batch->keys[0], (object_key{space_id{9}, 0, 1, chunk(2)}));
  EXPECT_EQ(batch->keys[1], (object_key{space_id{9}, 1, 0, chunk(2)})); // replicated: rank 0 for all
  EXPECT_EQ(batch->keys[2], (object_key{space_id{9}, 2, 1, chunk(2)}));
  EXPECT_EQ(batch->keys[3], (object_key{space_id{9}, 0, 1, chunk(3)}));
  EXPECT_EQ(batch->payload_bytes, (std::vector<uint64_t>{1000, 500, 200, 1000, 500, 200}));
}

TEST(ScopeObjects, NameTheSameObjectOfTheChunkBeforeAsTheirParent) {
  auto batch = objects_of(space(), chunks(3), std::nullopt, {{1, 2}, {0, 1, 2}}, 1);
  EXPECT_EQ(batch->parents[0], name(0, 1, 1));
  EXPECT_EQ(batch->parents[1], name(1, 0, 1));
  EXPECT_EQ(batch->parents[3], name(0, 1, 2));
}

TEST(ScopeObjects, StatesOfTrailingPoolsFollowTheChunkThatTheyBelongTo) {
  auto batch = objects_of(space(), chunks(3), std::nullopt, {{1, 2}, {0, 1, 2}}, 1);
  EXPECT_EQ(batch->parents[2], name(0, 1, 2));
  EXPECT_EQ(batch->parents[5], name(0, 1, 3));
  EXPECT_TRUE(batch->trailing.test(2));
  EXPECT_EQ(batch->trailing.count(), 1u);
}

TEST(ScopeObjects, AReplicatedStateFollowsTheChunkOfRankZero) {
  auto in = space();
  in.spec.pools[2].replicated = true;
  EXPECT_EQ(objects_of(in, chunks(1), std::nullopt, {{0, 1}, {2}}, 1)->parents[0], name(0, 0, 1));
}

TEST(ScopeObjects, StatesOfASpaceWithoutAttentionStandAlone) {
  auto in = space();
  in.spec.pools.erase(in.spec.pools.begin(), in.spec.pools.begin() + 2);
  EXPECT_TRUE(objects_of(in, chunks(2), std::nullopt, {{0, 2}, {0}}, 1)->parents[1].empty());
}

TEST(ScopeObjects, AreOnlyOfThePoolsThatAreWanted) {
  auto batch = objects_of(space(), chunks(2), std::nullopt, {{0, 2}, {0, 2}}, 1);
  EXPECT_EQ(batch->payload_bytes, (std::vector<uint64_t>{1000, 200, 1000, 200}));
  EXPECT_EQ(batch->keys[3], (object_key{space_id{9}, 2, 1, chunk(2)}));
}

TEST(ScopeObjects, TheFirstChunkContinuesWhatCameBeforeIfThatIsKnown) {
  EXPECT_TRUE(objects_of(space(), chunks(1), std::nullopt, {{0, 1}, {0, 1, 2}}, 0)->parents[0].empty());
  EXPECT_EQ(objects_of(space(), chunks(1), chunk(77), {{0, 1}, {0, 1, 2}}, 0)->parents[0], name(0, 0, 77));
}

TEST(ScopeObjects, ManyAreMadeInSlices) {
  constexpr size_t count = scope_objects::slice_objects;
  auto objects = making(space(), chunks(count), std::nullopt, {{0, count}, {0, 1, 2}}, 0);
  size_t steps = 1;
  while (!objects.step())
    ++steps;
  EXPECT_EQ(steps, 3u);
  auto batch = objects.take();
  ASSERT_EQ(batch->size(), 3 * count);
  for (size_t i = 3; i < batch->size(); i += 3)
    EXPECT_EQ(batch->parents[i], to_entry_key(batch->keys[i - 3]));
}

TEST(ScopeObjects, AnEmptyRangeHasNone) {
  EXPECT_EQ(objects_of(space(), chunks(2), std::nullopt, {{2, 0}, {0}}, 0)->size(), 0u);
}

} // namespace scope_objects_test
