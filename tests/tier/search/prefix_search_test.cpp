#include "tier/search/prefix_search.hpp"

#include "tests/index/spaces.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace prefix_search_test {

constexpr size_t slice = prefix_search::slice_objects;

space_ptr space(uint32_t trailing_pools = 0) {
  auto spec = terrace::test::small_space();
  for (uint32_t i = 0; i < trailing_pools; ++i)
    spec.pools.push_back({.name = "state", .object_bytes = 1 << 20, .rule = hit_rule::trailing_chunks});
  return std::make_shared<const opened_space>(opened_space{space_id{1}, spec, spec.fingerprint()});
}

prefix_search search_for(size_t objects, bool hold, const std::vector<tier_kind>& tiers,
                         const space_ptr& in = space(), bool note_access = false) {
  prefix_subject of{
      in, {static_cast<uint32_t>(objects / in->spec.pools.size()), 0, UINT64_MAX}, hold, note_access};
  return {of, chain(0, objects), tiers};
}

/// If the tier is asked: it answers with the first `present` objects that it is asked for, held under ids from 1 on.
void add(prefix_search& search, size_t tier, size_t present, bool hold = false) {
  auto asked = search.probe(tier);
  if (!asked)
    return;
  size_t objects = std::min(asked->range.count, asked->objects->size());
  probe_answer made;
  made.present = object_bitmap(objects);
  std::vector<object_place> places(objects);
  for (size_t i = 0; i < std::min(present, objects); ++i) {
    made.present.set(i);
    places[i] = {object_id{asked->range.first + i + 1}, 0, 4096, 8192};
  }
  if (hold)
    made.held = std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
  search.add(tier, std::move(made));
}

void publish(tier_index& index, uint64_t first, size_t count) {
  for (uint64_t n = first; n < first + count; ++n)
    index.table().publish(
        index.table().insert({.key = key_of(n), .physical_bytes = 8192, .payload_bytes = 4096}));
}

TEST(PrefixSearch, WithoutATierNothingIsFound) {
  auto search = search_for(10, false, {});
  EXPECT_FALSE(search.next_slice());
  auto found = search.take();
  EXPECT_FALSE(found.plan_some());
  EXPECT_EQ(found.plan().found_chunks, 0u);
  EXPECT_EQ(found.plan().requested_chunks, 10u);
}

TEST(PrefixSearch, AShortRequestIsOneSliceAndItsProbeNotesTheAccess) {
  auto search = search_for(slice, true, {tier_kind::host}, space(), true);
  ASSERT_TRUE(search.next_slice());
  EXPECT_TRUE(search.one_slice());
  auto asked = *search.probe(0);
  EXPECT_TRUE(asked.hold);
  EXPECT_TRUE(asked.note_access);
  EXPECT_EQ(asked.range.count, slice);
  add(search, 0, 5, true);
  EXPECT_FALSE(search.next_slice());
  auto found = search.take();
  EXPECT_FALSE(found.plan_some());
  EXPECT_EQ(found.plan().found_chunks, 5u);
  EXPECT_FALSE(found.next_accesses()) << "it was noted twice";
}

TEST(PrefixSearch, GoesOnWhileTheTiersTogetherHaveTheSlice) {
  auto search = search_for(3 * slice, true, {tier_kind::host, tier_kind::disk}, space(), true);
  ASSERT_TRUE(search.next_slice());
  EXPECT_FALSE(search.one_slice());
  EXPECT_FALSE(search.probe(0)->note_access);
  add(search, 0, 3, true);
  add(search, 1, slice);
  ASSERT_TRUE(search.next_slice());
  EXPECT_EQ(search.probe(0)->range.first, slice);
  add(search, 0, slice - 1, true);
  add(search, 1, 0);
  EXPECT_FALSE(search.next_slice()) << "the chain has ended";
  auto found = search.take();
  EXPECT_FALSE(found.plan_some());
  EXPECT_EQ(found.plan().found_chunks, 2 * slice - 1);
  EXPECT_EQ(found.plan().requested_chunks, 3 * slice);
  auto some = found.next_accesses();
  ASSERT_TRUE(some);
  auto& used = *some;
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0].chains, 1u);
  EXPECT_EQ(used[0].ids.size(), 2 * slice - 1);
  EXPECT_EQ(used[0].ids[3], object_id{}) << "what is not held leaves a gap";
  EXPECT_EQ(used[0].ids[slice], object_id{slice + 1});
  EXPECT_TRUE(used[1].ids.empty());
}

TEST(PrefixSearch, AHoldThatBeginsLateHasItsObjectsAtTheirPlaces) {
  auto search =
      search_for(3 * slice, true, {tier_kind::host, tier_kind::disk, tier_kind::disk}, space(), true);
  ASSERT_TRUE(search.next_slice());
  add(search, 0, slice, true);
  add(search, 1, 0);
  add(search, 2, 0);
  ASSERT_TRUE(search.next_slice());
  add(search, 0, 0);
  add(search, 1, slice, true);
  add(search, 2, 0);
  ASSERT_TRUE(search.next_slice());
  add(search, 0, 0);
  add(search, 1, 0);
  add(search, 2, 0);
  EXPECT_FALSE(search.next_slice());
  auto found = search.take();
  EXPECT_FALSE(found.plan_some());
  EXPECT_EQ(found.plan().found_chunks, 2 * slice);
  auto used = found.next_accesses();
  ASSERT_TRUE(used);
  ASSERT_EQ(used->size(), 3u);
  EXPECT_EQ((*used)[0].ids.size(), slice);
  ASSERT_EQ((*used)[1].ids.size(), slice);
  EXPECT_EQ((*used)[1].ids.front(), object_id{slice + 1});
  EXPECT_TRUE((*used)[2].ids.empty()) << "it holds nothing";
}

TEST(PrefixSearch, ATierBelowIsAskedOnlyBehindWhatFasterTiersHave) {
  auto search = search_for(100, true, {tier_kind::host, tier_kind::disk}, space(), true);
  ASSERT_TRUE(search.next_slice());
  add(search, 0, 70, true);
  EXPECT_EQ(search.bytes_in_memory(), 70u * 8192);
  auto asked = search.probe(1);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->range.first, 64u) << "whole words of a bitmap";
  EXPECT_EQ(asked->range.count, 36u);
  EXPECT_EQ(asked->chains, 1u);
  add(search, 1, 20, true);
  EXPECT_EQ(search.bytes_in_memory(), 70u * 8192);
  auto found = search.take();
  EXPECT_FALSE(found.plan_some());
  ASSERT_EQ(found.plan().found_chunks, 84u);
  EXPECT_EQ(found.plan().chunk_tiers[69], tier_kind::host);
  EXPECT_EQ(found.plan().chunk_tiers[70], tier_kind::disk);
  auto held = found.take_holds();
  ASSERT_EQ(held.size(), 2u);
  ASSERT_EQ(held[1].held->places().size(), 100u);
  EXPECT_FALSE(held[1].held->places()[63].present());
  EXPECT_EQ(held[1].held->places()[64].id, object_id{65});
}

TEST(PrefixSearch, ATierBelowIsNotAskedIfFasterTiersHaveEverythingUnlessForCopies) {
  auto search = search_for(2 * slice, true, {tier_kind::host, tier_kind::gpu, tier_kind::disk});
  ASSERT_TRUE(search.next_slice());
  add(search, 0, slice, true);
  EXPECT_TRUE(search.probe(1)) << "a GPU's tier is faster";
  add(search, 1, 0);
  EXPECT_FALSE(search.probe(2));
  auto copies = search.probe(2, true);
  ASSERT_TRUE(copies);
  EXPECT_EQ(copies->range.first, 0u);
  ASSERT_TRUE(search.next_slice());
  add(search, 0, 0);
  add(search, 1, slice, true);
  EXPECT_TRUE(search.probe(2)) << "the process of a GPU may end";
  EXPECT_EQ(search.bytes_in_memory(), slice * 8192);
}

TEST(PrefixSearch, ALeaseIsHeldBelowBehindTheFirstGapOfHostMemory) {
  auto search = search_for(2 * slice, true, {tier_kind::host, tier_kind::disk});
  ASSERT_TRUE(search.next_slice());
  add(search, 0, slice - 1, true);
  EXPECT_EQ(search.probe(1)->range.first, slice - 64);
  add(search, 1, 64, true);
  ASSERT_TRUE(search.next_slice());
  add(search, 0, slice, true);
  auto behind = search.probe(1);
  ASSERT_TRUE(behind) << "host memory does not keep it for the lease";
  EXPECT_EQ(behind->range.first, slice);
  EXPECT_EQ(behind->range.count, slice);
}

TEST(PrefixSearch, WithTrailingPoolsEverythingIsSearched) {
  auto search = search_for(2 * slice, true, {tier_kind::host}, space(1), true);
  ASSERT_TRUE(search.next_slice());
  add(search, 0, 0);
  ASSERT_TRUE(search.next_slice());
  add(search, 0, 0);
  EXPECT_FALSE(search.next_slice());
  auto one = search_for(2, true, {tier_kind::host}, space(1), true);
  ASSERT_TRUE(one.next_slice());
  EXPECT_FALSE(one.probe(0)->note_access) << "which states are used is known afterwards";
}

TEST(PrefixSearch, AGpusTierIsFasterThanHostMemoryAndReadBehindIt) {
  tier_index host, gpu, disk;
  publish(host, 0, 100);
  publish(gpu, 0, 90);
  publish(disk, 0, 100);
  auto search = search_for(100, false, {tier_kind::host, tier_kind::gpu, tier_kind::disk});
  ASSERT_TRUE(search.next_slice());
  ASSERT_TRUE(search.read(0, host));
  auto counted = search.read(1, gpu);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->hits, 90u);
  EXPECT_EQ(counted->misses, 10u);
  counted = search.read(2, disk);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->hits, 0u) << "faster ones have everything";
  auto found = search.take();
  EXPECT_FALSE(found.plan_some());
  ASSERT_EQ(found.plan().found_chunks, 100u);
  EXPECT_EQ(found.plan().chunk_tiers[0], tier_kind::gpu);
  EXPECT_EQ(found.plan().chunk_tiers[89], tier_kind::gpu);
  EXPECT_EQ(found.plan().chunk_tiers[90], tier_kind::host);
}

TEST(PrefixSearch, OfASlowerTierOnlyWhatIsBehindTheFasterOnesIsRead) {
  tier_index host, disk;
  publish(host, 0, 100);
  publish(disk, 0, 120);
  auto search = search_for(128, false, {tier_kind::host, tier_kind::disk});
  ASSERT_TRUE(search.next_slice());
  ASSERT_TRUE(search.read(0, host));
  auto counted = search.read(1, disk);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->hits, 120u - 64) << "whole words of a bitmap";
  EXPECT_EQ(counted->misses, 8u);
  auto found = search.take();
  EXPECT_FALSE(found.plan_some());
  ASSERT_EQ(found.plan().found_chunks, 120u);
  EXPECT_EQ(found.plan().chunk_tiers[99], tier_kind::host);
  EXPECT_EQ(found.plan().chunk_tiers[100], tier_kind::disk);

  auto whole = search_for(100, false, {tier_kind::host, tier_kind::disk});
  ASSERT_TRUE(whole.next_slice());
  ASSERT_TRUE(whole.read(0, host));
  auto shut = disk.table().shut();
  counted = whole.read(1, disk);
  ASSERT_TRUE(counted) << "it is not read at all";
  EXPECT_EQ(counted->hits + counted->misses, 0u);
}

TEST(TierIndex, FindsTheFirstOfARangeThatItHas) {
  tier_index index;
  auto wanted = chain(0, 6);
  EXPECT_EQ(index.first_present(*wanted, 0, 6), 6u);
  index.table().insert({.key = key_of(4), .physical_bytes = 8192, .payload_bytes = 4096});
  EXPECT_EQ(index.first_present(*wanted, 0, 6), 4u) << "it is being written";
  publish(index, 2, 1);
  EXPECT_EQ(index.first_present(*wanted, 0, 6), 2u);
  EXPECT_EQ(index.first_present(*wanted, 3, 6), 4u);
  EXPECT_EQ(index.first_present(*wanted, 3, 4), 4u) << "no further";
  auto shut = index.table().shut();
  EXPECT_EQ(index.first_present(*wanted, 1, 6), 1u) << "it is being changed";
}

TEST(PrefixSearch, ReadsAnIndexUnlessTheObjectsMustBeHeld) {
  tier_index index;
  publish(index, 0, 4);
  auto search = search_for(6, false, {tier_kind::host});
  ASSERT_TRUE(search.next_slice());
  auto counted = search.read(0, index);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->hits, 4u);
  EXPECT_EQ(counted->misses, 2u);
  auto found = search.take();
  EXPECT_FALSE(found.plan_some());
  EXPECT_EQ(found.plan().found_chunks, 4u);
  auto holding = search_for(6, true, {tier_kind::host});
  ASSERT_TRUE(holding.next_slice());
  EXPECT_FALSE(holding.read(0, index));
}

} // namespace prefix_search_test
