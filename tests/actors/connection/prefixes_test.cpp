#include "actors/connection/prefixes.hpp"

#include "objects.hpp"
#include "tests/index/spaces.hpp"
#include "tier/object_slices.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

digest chunk(uint64_t number) { return key_of(number).chunk; }

/// Two ranks; a pool of attention, a replicated one, and a trailing one.
opened_space space() {
  auto spec = terrace::testing::small_space();
  spec.world_size = 2;
  spec.pools = {{.name = "kv", .object_bytes = 1000},
                {.name = "shared", .object_bytes = 500, .replicated = true},
                {.name = "state", .object_bytes = 200, .rule = hit_rule::trailing_chunks}};
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

} // namespace

TEST(CheckedRange, ACountOfZeroMeansAllThatFollow) {
  auto range = checked_range(10, 4, 0);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 4u);
  EXPECT_EQ(range->count, 6u);
}

TEST(CheckedRange, TakesARangeWithinTheChunks) {
  auto range = checked_range(10, 4, 6);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->count, 6u);
}

TEST(CheckedRange, RefusesWhatLeavesTheChunksWithoutOverflow) {
  for (auto [first, count] :
       {std::pair<uint32_t, uint32_t>{4, 7}, {11, 0}, {5, UINT32_MAX}, {UINT32_MAX, 2}}) {
    auto range = checked_range(10, first, count);
    ASSERT_FALSE(range) << first << " " << count;
    EXPECT_EQ(range.error().code, errc::bad_request);
    EXPECT_NE(range.error().text.find("10"), std::string::npos);
  }
}

TEST(CheckedRange, NothingOfNothingIsAllowed) {
  auto range = checked_range(0, 0, 0);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->count, 0u);
}

TEST(ObjectsOf, GoChunkByChunkAndPoolByPoolOnOneRank) {
  auto batch = objects_of(space(), chunks(3), std::nullopt, {{1, 2}, {0, 1, 2}}, 1);
  ASSERT_EQ(batch->size(), 6u);
  EXPECT_EQ(batch->keys[0], (object_key{space_id{9}, 0, 1, chunk(2)}));
  EXPECT_EQ(batch->keys[1], (object_key{space_id{9}, 1, 0, chunk(2)})); // replicated: rank 0 for all
  EXPECT_EQ(batch->keys[2], (object_key{space_id{9}, 2, 1, chunk(2)}));
  EXPECT_EQ(batch->keys[3], (object_key{space_id{9}, 0, 1, chunk(3)}));
  EXPECT_EQ(batch->payload_bytes, (std::vector<uint64_t>{1000, 500, 200, 1000, 500, 200}));
}

TEST(ObjectsOf, NameTheSameObjectOfTheChunkBeforeAsTheirParent) {
  auto batch = objects_of(space(), chunks(3), std::nullopt, {{1, 2}, {0, 1, 2}}, 1);
  EXPECT_EQ(batch->parents[0], name(0, 1, 1));
  EXPECT_EQ(batch->parents[1], name(1, 0, 1));
  EXPECT_EQ(batch->parents[3], name(0, 1, 2));
}

TEST(ObjectsOf, StatesOfTrailingPoolsFollowTheChunkThatTheyBelongTo) {
  auto batch = objects_of(space(), chunks(3), std::nullopt, {{1, 2}, {0, 1, 2}}, 1);
  EXPECT_EQ(batch->parents[2], name(0, 1, 2));
  EXPECT_EQ(batch->parents[5], name(0, 1, 3));
  EXPECT_TRUE(batch->trailing.test(2));
  EXPECT_EQ(batch->trailing.count(), 1u);
}

TEST(ObjectsOf, AReplicatedStateFollowsTheChunkOfRankZero) {
  auto in = space();
  in.spec.pools[2].replicated = true;
  EXPECT_EQ(objects_of(in, chunks(1), std::nullopt, {{0, 1}, {2}}, 1)->parents[0], name(0, 0, 1));
}

TEST(ObjectsOf, StatesOfASpaceWithoutAttentionStandAlone) {
  auto in = space();
  in.spec.pools.erase(in.spec.pools.begin(), in.spec.pools.begin() + 2);
  EXPECT_TRUE(objects_of(in, chunks(2), std::nullopt, {{0, 2}, {0}}, 1)->parents[1].empty());
}

TEST(ObjectsOf, AreOnlyOfThePoolsThatAreWanted) {
  auto batch = objects_of(space(), chunks(2), std::nullopt, {{0, 2}, {0, 2}}, 1);
  EXPECT_EQ(batch->payload_bytes, (std::vector<uint64_t>{1000, 200, 1000, 200}));
  EXPECT_EQ(batch->keys[3], (object_key{space_id{9}, 2, 1, chunk(2)}));
}

TEST(CheckedPools, AreAllUnlessSomeAreNamed) {
  EXPECT_EQ(checked_pools(space().spec, nullptr, 1), (pool_list{0, 1, 2}));
  auto named = [](std::vector<uint8_t> pools, size_t chunks = 1) {
    flatbuffers::FlatBufferBuilder body;
    body.Finish(body.CreateVector(pools));
    return checked_pools(space().spec,
                         flatbuffers::GetRoot<flatbuffers::Vector<uint8_t>>(body.GetBufferPointer()), chunks);
  };
  EXPECT_EQ(named({0, 2}), (pool_list{0, 2}));
  auto unknown = named({1, 3});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text, "pool number 3 was asked for, the space has 3 pools");
  EXPECT_TRUE(named({0, 2}, transfer_objects_max / 2));
  auto many = named({0, 2}, transfer_objects_max / 2 + 1);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, errc::bad_request);
}

TEST(ObjectsOf, TheFirstChunkContinuesWhatCameBeforeIfThatIsKnown) {
  EXPECT_TRUE(objects_of(space(), chunks(1), std::nullopt, {{0, 1}, {0, 1, 2}}, 0)->parents[0].empty());
  EXPECT_EQ(objects_of(space(), chunks(1), chunk(77), {{0, 1}, {0, 1, 2}}, 0)->parents[0], name(0, 0, 77));
}

TEST(LeasedOnDisk, PicksTheObjectsOfOneRankOutOfTheLease) {
  auto in = std::make_shared<opened_space>(space());
  chunk_layout layout(in->spec);
  ASSERT_EQ(layout.objects_per_chunk(), 5u); // kv on two ranks, shared once, state on two
  std::vector<object_place> places;
  for (uint64_t n = 0; n < 15; ++n)
    places.push_back({static_cast<object_id>(n + 1), n * 4096, 1, 4096});
  auto held = std::make_shared<lease>();
  held->in = in;
  held->chunks = chunks(3);
  EXPECT_TRUE(leased_part(held, {{0, 3}, {0, 1, 2}}, 1).empty());
  held->held.push_back({tier_kind::disk, std::make_shared<object_hold>(release_sink_ptr{}, places)});
  auto part = leased_part(held, {{1, 2}, {0, 1, 2}}, 1).front().held;
  ASSERT_NE(part, nullptr);
  std::vector<uint64_t> ids;
  for (const object_place& place : part->places())
    ids.push_back(static_cast<uint64_t>(place.id) - 1);
  EXPECT_EQ(ids, (std::vector<uint64_t>{6, 7, 9, 11, 12, 14}));
  EXPECT_EQ(leased_part(held, {{1, 2}, {1}}, 1).front().held->places().size(), 2u);
}

TEST(LeasedOnDisk, ThePartKeepsTheLease) {
  auto held = std::make_shared<lease>();
  held->in = std::make_shared<opened_space>(space());
  held->held.push_back(
      {tier_kind::disk, std::make_shared<object_hold>(release_sink_ptr{}, std::vector<object_place>(5))});
  std::weak_ptr<lease> watched = held;
  auto part = leased_part(held, {{0, 1}, {0, 1, 2}}, 0).front().held;
  held.reset();
  EXPECT_FALSE(watched.expired());
  part.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(RunsOf, AreCheckedAgainstTheObjectsAndTheRegion) {
  auto batch = objects_of(space(), chunks(1), std::nullopt, {{0, 1}, {0, 1, 2}}, 0);
  auto with = [&](std::vector<wire::Run> runs, uint64_t region_bytes) {
    flatbuffers::FlatBufferBuilder body;
    auto listed = body.CreateVectorOfStructs(runs);
    body.Finish(listed);
    const auto* read = flatbuffers::GetRoot<protocol::run_vector>(body.GetBufferPointer());
    return runs_of(*read, nullptr, *batch, region_bytes);
  };
  auto made = with({{0, 1000, 0, 1}, {4000, 50, 100, 10}, {2000, 200, 0, 1}}, 5000);
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_EQ((*made)->objects(), 3u);
  EXPECT_EQ((*made)->pieces(1).size(), 10u);
  EXPECT_EQ((*made)->pieces(2)[0].region_offset, 2000u);
  auto outside = with({{0, 1000, 0, 1}, {4000, 50, 100, 10}, {4900, 200, 0, 1}}, 5000);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, errc::bad_request);
  EXPECT_FALSE(with({{0, 1000, 0, 1}}, 5000));
}

TEST(Slice, CutsTheThreeVectorsAlikeAndSharesAWhole) {
  auto all = chain(0, 5);
  EXPECT_EQ(slice(all, 0, 5), all);
  auto part = slice(all, 1, 3);
  ASSERT_EQ(part->size(), 2u);
  EXPECT_EQ(part->keys[0], key_of(1));
  EXPECT_EQ(part->parents[1], to_entry_key(key_of(1)));
  EXPECT_EQ(part->payload_bytes.size(), 2u);
}
