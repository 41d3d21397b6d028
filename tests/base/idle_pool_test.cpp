#include "base/idle_pool.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(IdlePool, GivesBackTheMostRecentlyUsedAndElseANewOne) {
  idle_pool<int> pool;
  auto fresh = [] { return 0; };
  EXPECT_EQ(pool.take(fresh), 0);
  pool.put_back(1);
  pool.put_back(2);
  EXPECT_EQ(pool.take(fresh), 2);
  EXPECT_EQ(pool.take(fresh), 1);
  EXPECT_EQ(pool.take(fresh), 0);
}

TEST(IdlePool, KeepsAFew) {
  idle_pool<size_t> pool;
  for (size_t i = 0; i < 2 * idle_pool<size_t>::kept_max; ++i)
    pool.put_back(i);
  EXPECT_EQ(pool.take([] { return size_t{0}; }), idle_pool<size_t>::kept_max - 1);
}
