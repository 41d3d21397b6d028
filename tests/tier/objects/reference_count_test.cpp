#include "tier/objects/reference_count.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace terrace;
using namespace terrace::test;

namespace {

object_place place(uint64_t id) {
  object_place at;
  at.id = static_cast<object_id>(id);
  at.physical_bytes = 8192;
  return at;
}

held_object held(uint64_t id, uint32_t holds, bool touched = false) {
  return {static_cast<object_id>(id), key_of(id), 8192, holds, touched};
}

struct ReferenceCount : ::testing::Test {
  reference_count count{tier_kind::host};
  std::vector<std::string> differences;

  void add(reference_kind kind, std::vector<uint64_t> ids) {
    std::vector<object_place> places;
    for (uint64_t id : ids)
      places.push_back(place(id));
    places.push_back({}); // an absent place
    count.add(kind, places);
  }
};

} // namespace

TEST_F(ReferenceCount, FindsNothingWhereEachHoldHasAnOwner) {
  add(reference_kind::lease, {1, 2});
  add(reference_kind::session, {2});
  add(reference_kind::pin, {2, 3});
  add(reference_kind::reading, {1});
  for (auto [id, holds] : {std::pair{1, 2}, {2, 3}, {3, 1}})
    count.compare(held(static_cast<uint64_t>(id), static_cast<uint32_t>(holds)), differences);
  EXPECT_TRUE(differences.empty());
  EXPECT_TRUE(count.unexplained().empty());
  EXPECT_TRUE(count.not_compared(10).empty());
  EXPECT_EQ(count.of(reference_kind::lease), 2u);
  EXPECT_EQ(count.of(reference_kind::pin), 2u);
  EXPECT_EQ(count.of_requests(), 0u);
}

TEST_F(ReferenceCount, NamesAnObjectWithMoreReferencesThanHolds) {
  add(reference_kind::lease, {7});
  add(reference_kind::session, {7});
  count.compare(held(7, 1), differences);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0],
            "the object of space 1, pool 0, rank 0, chunk 0700000000000000 has 1 holds in the host "
            "tier, of which leases have 1, sessions have 1, pins have 0, readings have 0");
}

TEST_F(ReferenceCount, NamesAReferenceToAnObjectThatIsGone) {
  add(reference_kind::pin, {9});
  ASSERT_EQ(count.not_compared(10), std::vector{static_cast<object_id>(9)});
  held_object gone;
  gone.id = static_cast<object_id>(9);
  count.compare(gone, differences);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].find("an object that is no longer there has 0 holds"), 0u) << differences[0];
  EXPECT_TRUE(count.not_compared(10).empty());
}

TEST_F(ReferenceCount, HoldsOfNobodyAreThoseOfRequests) {
  add(reference_kind::lease, {4});
  count.compare(held(4, 3), differences);
  count.compare(held(5, 1), differences);
  EXPECT_TRUE(differences.empty());
  EXPECT_EQ(count.of_requests(), 3u);
  ASSERT_EQ(count.unexplained().size(), 2u) << "if there is no request, nobody has a reason to hold them";
  EXPECT_NE(count.unexplained()[0].find("has 3 holds"), std::string::npos);
}

TEST_F(ReferenceCount, WhatChangedSinceTheWalkBeganIsNoDifference) {
  add(reference_kind::lease, {4, 5});
  count.compare(held(4, 0, true), differences);
  count.compare(held(5, 3, true), differences);
  EXPECT_TRUE(differences.empty());
  EXPECT_TRUE(count.unexplained().empty());
}

TEST_F(ReferenceCount, WhatIsChargedCountsAnObjectOnce) {
  add(reference_kind::lease, {1, 2});
  add(reference_kind::lease, {2});
  add(reference_kind::session, {2, 3});
  add(reference_kind::reading, {3});
  add(reference_kind::pin, {4});
  EXPECT_EQ(count.leased_bytes(), 4 * 8192u);
  EXPECT_EQ(count.session_bytes(), 2 * 8192u);
}
