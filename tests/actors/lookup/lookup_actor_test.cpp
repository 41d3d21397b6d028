// Lookups that read the tiers' indexes, and those that have to ask.
#include "group_fixture.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct Lookup : group_fixture {
  tier_index& host_index() { return const_cast<tier_index&>(*group->tiers().front().index); }
};

TEST_F(Lookup, ThatHoldsNothingDoesNotWaitForATier) {
  start({.host_objects = 8});
  store(0, 4);
  stop(group->host);
  auto bare = lookup(chain(0, 6));
  EXPECT_EQ(bare.failure.code, errc::ok);
  EXPECT_EQ(bare.plan.found_chunks, 4u);
  EXPECT_EQ(lookup(chain(0, 6), true).failure.code, errc::internal) << "a lease is the tier's to give";
}

TEST_F(Lookup, AsksATierThatIsChangingItsIndex) {
  start({.host_objects = 8});
  store(0, 4);
  {
    auto shut = host_index().table().shut();
    EXPECT_EQ(lookup(chain(0, 6)).plan.found_chunks, 4u);
  }
  auto shut = host_index().table().shut();
  stop(group->host);
  EXPECT_EQ(lookup(chain(0, 6)).failure.code, errc::internal);
}

TEST_F(Lookup, FindsAPrefixThatAlternatesBetweenTheTiersWhoeverReads) {
  start({.host_objects = 16, .disk_objects = 32});
  store(0, 3);
  settle();
  forget_host(1, 1);
  EXPECT_EQ(lookup(chain(0, 3)).plan.found_chunks, 3u);
  auto shut = host_index().table().shut(); // one is read, the other asked
  EXPECT_EQ(lookup(chain(0, 3)).plan.found_chunks, 3u);
}

TEST_F(Lookup, ALeaseHoldsOnDiskOnlyWhatHostMemoryLacks) {
  start({.host_objects = 400, .disk_objects = 600});
  store(0, 200);
  settle();
  {
    auto leased = lookup(chain(0, 200), true);
    ASSERT_EQ(leased.plan.found_chunks, 200u);
    ASSERT_EQ(leased.held.size(), 1u);
    EXPECT_EQ(leased.held[0].tier, tier_kind::host);
    EXPECT_EQ(report(group->tier(tier_kind::disk)->tier).held_objects, 0u);
    auto pinned = lookup(chain(0, 200), true, true);
    EXPECT_EQ(pinned.held.size(), 2u);
    EXPECT_EQ(report(group->tier(tier_kind::disk)->tier).held_objects, 200u) << "a pin keeps the copies";
  }
  forget_host(150, 50);
  auto leased = lookup(chain(0, 200), true);
  ASSERT_EQ(leased.plan.found_chunks, 200u);
  ASSERT_EQ(leased.held.size(), 2u);
  const auto& below = leased.held[1].held->places();
  ASSERT_EQ(below.size(), 200u);
  EXPECT_TRUE(below[150].present() && below[199].present());
  EXPECT_FALSE(below[127].present()) << "host memory has all of the first slice";
}

TEST_F(Lookup, ALeaseThatHostMemoryMayNotHoldHoldsCopiesOnDisk) {
  start({.host_objects = 200, .disk_objects = 800});
  store(0, 190);
  settle();
  auto leased = lookup(chain(0, 190), true);
  EXPECT_EQ(leased.plan.found_chunks, 190u) << "the disk holds what host memory may not";
  ASSERT_EQ(leased.held.size(), 2u);
  EXPECT_TRUE(leased.held[1].held->places()[189].present());
}

TEST_F(Lookup, OfManySlicesEndsAtTheFirstChunkThatNobodyHas) {
  start({.host_objects = 700});
  store(0, 600);
  EXPECT_EQ(lookup(chain(0, 690)).plan.found_chunks, 600u);
  forget_host(299, 1);
  EXPECT_EQ(lookup(chain(0, 690)).plan.found_chunks, 299u);
  auto shut = host_index().table().shut();
  EXPECT_EQ(lookup(chain(0, 690)).plan.found_chunks, 299u);
}

TEST_F(Lookup, CountsWhatItReadsAsTheTierWould) {
  start({.host_objects = 8});
  store(0, 4);
  auto before = report(group->host);
  lookup(chain(0, 6));
  auto read = report(group->host);
  EXPECT_EQ(read.hits - before.hits, 4u);
  EXPECT_EQ(read.misses - before.misses, 2u);
  auto shut = host_index().table().shut();
  lookup(chain(0, 6));
  auto asked = report(group->host);
  EXPECT_EQ(asked.hits - read.hits, 4u);
  EXPECT_EQ(asked.misses - read.misses, 2u);
}

TEST_F(Lookup, DoesNotSeeWhatLiesOnAPathThatCannotBeRead) {
  start({.host_objects = 16, .disk_objects = 32, .disk_paths = 2});
  store(0, 4);
  settle();
  forget_host(0, 4);
  EXPECT_EQ(lookup(chain(0, 4)).plan.found_chunks, 4u);
  service->set(0, false, false, "away", [](bool) {});
  service->set(1, false, false, "away", [](bool) {});
  EXPECT_EQ(lookup(chain(0, 4)).plan.found_chunks, 0u);
  service->set(0, true, true, "", [](bool) {});
  EXPECT_LT(lookup(chain(0, 4)).plan.found_chunks, 4u);
  service->set(1, true, true, "", [](bool) {});
  EXPECT_EQ(lookup(chain(0, 4)).plan.found_chunks, 4u);
}

} // namespace
