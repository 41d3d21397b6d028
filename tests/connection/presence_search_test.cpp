#include "connection/chunk_reservation.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

TEST(PresenceSearch, AsksForSomeObjectsAtATime) {
  constexpr size_t some = presence_search::probed_objects;
  presence_search search(chain(1, some + 3));
  auto first = search.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->objects, search.objects());
  EXPECT_FALSE(first->hold);
  EXPECT_FALSE(first->note_access);
  EXPECT_EQ(first->range.first, 0u);
  EXPECT_EQ(first->range.count, some);
  probe_answer found;
  found.present = object_bitmap(some);
  found.present.set(5);
  search.add(found);
  auto second = search.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->range.first, some);
  found.present = object_bitmap(3);
  found.present.set(1);
  search.add(found);
  EXPECT_FALSE(search.next());
  EXPECT_EQ(search.present().count(), 2u);
  EXPECT_TRUE(search.present().test(5));
  EXPECT_TRUE(search.present().test(some + 1));
}

TEST(PresenceSearch, AsksNothingAboutNothing) {
  presence_search search(chain(1, 0));
  EXPECT_FALSE(search.next());
}
