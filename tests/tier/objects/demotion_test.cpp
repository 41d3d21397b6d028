#include "tier/objects/demotion.hpp"

#include "tests/tier/objects.hpp"
#include "tier/tier_config.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

/// Objects of a chain; each is the child of the one before it.
std::vector<demoted_object> chain_of(uint64_t first, uint64_t count) {
  std::vector<demoted_object> objects;
  for (uint64_t n = first; n < first + count; ++n)
    objects.push_back({key_of(n),
                       n == first ? entry_key{} : to_entry_key(key_of(n - 1)),
                       {object_id{n + 1}, n * 8192, 4096, 8192, 0}});
  return objects;
}
std::vector<demoted_object> both(std::vector<demoted_object> a, const std::vector<demoted_object>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
demote_answer written(uint64_t objects) {
  demote_answer answer;
  answer.done.objects = objects;
  answer.done.bytes = objects * 4096;
  return answer;
}
demote_answer lost(refusal_reason why, uint64_t objects) {
  demote_answer answer;
  answer.done.lose(why, objects);
  return answer;
}

} // namespace

TEST(DemotionBatches, HaveWhatAnotherTierMustKnow) {
  auto objects = chain_of(1, 3);
  objects[2].trailing = true;
  auto batches = batches_of(objects, false);
  ASSERT_EQ(batches.size(), 1u);
  const object_batch& batch = *batches[0].objects;
  EXPECT_EQ(batches[0].space, key_of(1).space);
  EXPECT_EQ(batch.keys, (std::vector{key_of(1), key_of(2), key_of(3)}));
  EXPECT_EQ(batch.parents, (std::vector{entry_key{}, to_entry_key(key_of(1)), to_entry_key(key_of(2))}));
  EXPECT_EQ(batch.payload_bytes, std::vector<uint64_t>(3, 4096));
  EXPECT_TRUE(batch.trailing.test(0));
  EXPECT_EQ(batches[0].places.size(), 3u);
  EXPECT_TRUE(batches_of({}, false).empty());
}

TEST(DemotionBatches, AreOfOneSpaceAndBounded) {
  auto objects = chain_of(1, demotion_batch::objects_max + 1);
  objects.push_back(objects.front());
  objects.back().key.space = space_id{2};
  auto batches = batches_of(objects, false);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[0].objects->size(), demotion_batch::objects_max);
  EXPECT_EQ(batches[1].objects->size(), 1u);
  EXPECT_EQ(batches[2].space, space_id{2});
}

TEST(DemotionBatches, MayBeOfOneChainEach) {
  auto objects = both(chain_of(1, 2), chain_of(10, 3));
  EXPECT_EQ(batches_of(objects, false).size(), 1u);
  auto batches = batches_of(objects, true);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].objects->size(), 2u);
  EXPECT_EQ(batches[1].objects->size(), 3u);
}

TEST(DemotionBatches, AreOfAtMostSoManyBytesUnlessTheyAreOfOneObject) {
  auto objects = chain_of(1, 5);
  uint64_t one = objects.front().place.physical_bytes;
  ASSERT_NE(one, 0u);
  auto pairs = batches_of(objects, false, 2 * one + 1);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].objects->size(), 2u);
  EXPECT_EQ(pairs[2].objects->size(), 1u);
  EXPECT_EQ(batches_of(objects, false, one - 1).size(), 5u);
}

TEST(DemotionProgress, WaitsForAnswersAndForTheEndOfHolds) {
  demotion of(batches_of(both(chain_of(1, 2), chain_of(10, 3)), true), 1);
  of.answered(0, written(2));
  EXPECT_FALSE(of.over());
  of.released(1); // the order does not matter
  of.released(0);
  EXPECT_FALSE(of.over());
  of.answered(1, written(1));
  EXPECT_TRUE(of.over());
  EXPECT_EQ(of.tally().objects, 3u) << "the others were there";
  EXPECT_EQ(of.tally().bytes, 3 * 4096u);
  EXPECT_TRUE(of.in_use().empty());
  EXPECT_TRUE(of.not_written().empty());
}

TEST(DemotionProgress, WaitsForAllTiers) {
  demotion of(batches_of(chain_of(1, 2), false), 2);
  of.answered(0, written(2));
  of.released(0);
  EXPECT_FALSE(of.over());
  of.answered(0, lost(refusal_reason::no_room, 2));
  EXPECT_TRUE(of.over());
  EXPECT_EQ(of.tally().objects, 2u);
  EXPECT_EQ(of.tally().lost_in_all(), 2u);
  EXPECT_EQ(of.not_written(), (std::vector{object_id{2}, object_id{3}}));
}

TEST(DemotionProgress, DoesNotWaitForMemoryThatAStalledDeviceReads) {
  demotion of(batches_of(both(chain_of(1, 2), chain_of(10, 1)), true), 1);
  auto stalled = lost(refusal_reason::failed, 2);
  stalled.stalled = true;
  of.answered(0, stalled);
  of.answered(1, written(1));
  EXPECT_FALSE(of.over()) << "the other hold ends soon";
  of.released(1);
  EXPECT_TRUE(of.over());
  EXPECT_EQ(of.in_use(), (std::vector{object_id{2}, object_id{3}}));
  of.released(0);
  EXPECT_TRUE(of.over());
  EXPECT_TRUE(of.in_use().empty());
}

TEST(DemotionProgress, WhatNobodyAnswersIsLost) {
  demotion of(batches_of(chain_of(1, 2), false), 1);
  of.released(0);
  of.answered(0, {{errc::internal, "it has ended"}, {}, false});
  EXPECT_TRUE(of.over());
  EXPECT_EQ(of.tally().lost[static_cast<size_t>(refusal_reason::failed)], 2u);
}

TEST(DemotionMode, HasNames) {
  EXPECT_EQ(to_string(demotion_mode::write_back), "write_back");
  EXPECT_EQ(to_string(demotion_mode::off), "off");
  EXPECT_TRUE(needs_origins(demotion_mode::write_back));
  EXPECT_TRUE(needs_origins(demotion_mode::selective));
  EXPECT_FALSE(needs_origins(demotion_mode::write_through));
}
