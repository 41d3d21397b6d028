#include "transfer/unread_files.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

TEST(RecentKeys, KnowsWhatWasAddedLately) {
  recent_keys keys;
  auto some = chain(0, 64, 4096), others = chain(1000, 64, 4096);
  for (const object_key& key : some->keys)
    EXPECT_FALSE(keys.has(key));
  for (const object_key& key : some->keys)
    keys.add(key);
  size_t known = 0, wrong = 0;
  for (size_t i = 0; i < 64; ++i) {
    known += keys.has(some->keys[i]);
    wrong += keys.has(others->keys[i]);
  }
  EXPECT_GE(known, 60U) << "two may have the same place";
  EXPECT_EQ(wrong, 0U);
}

TEST(RecentKeys, ForgetsTheOldest) {
  recent_keys keys;
  auto first = chain(1, 1, 4096);
  keys.add(first->keys[0]);
  EXPECT_TRUE(keys.has(first->keys[0]));
  auto many = chain(2, 20 * recent_keys::places, 4096);
  for (const object_key& key : many->keys)
    keys.add(key);
  EXPECT_FALSE(keys.has(first->keys[0]));
}
