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
