#include "storage/recovery.hpp"

#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace {
namespace {

constexpr uint64_t block = disk_alignment_bytes;

TEST(ExtentClaims, NeighboursDoNotOverlap) {
  extent_claims claims(1 << 20);
  EXPECT_TRUE(claims.claim(0, 64 * block));
  EXPECT_TRUE(claims.claim(64 * block, block));
  EXPECT_TRUE(claims.claim(65 * block, 191 * block));
  EXPECT_FALSE(claims.claim(255 * block, block));
}

TEST(ExtentClaims, WhatOverlapsTakesNothing) {
  extent_claims claims(1 << 20);
  ASSERT_TRUE(claims.claim(100 * block, 10 * block));
  EXPECT_FALSE(claims.claim(0, 101 * block));
  EXPECT_TRUE(claims.claim(0, 100 * block));
}

TEST(ExtentClaims, AgreesWithAListOfBlocks) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 dice(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<bool> taken(300);
    extent_claims claims(taken.size() * block);
    for (int i = 0; i < 60; ++i) {
      uint64_t first = dice() % taken.size();
      uint64_t count = 1 + dice() % std::min<uint64_t>(taken.size() - first, 100);
      bool is_free = true;
      for (uint64_t b = first; b < first + count; ++b)
        is_free = is_free && !taken[b];
      ASSERT_EQ(claims.claim(first * block, count * block), is_free);
      for (uint64_t b = first; is_free && b < first + count; ++b)
        taken[b] = true;
    }
  }
}

} // namespace
} // namespace terrace
