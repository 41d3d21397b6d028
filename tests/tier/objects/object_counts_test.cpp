#include "tier/search/lease_ledger.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace terrace;

TEST(ObjectCounts, CountsAndForgets) {
  object_counts counts;
  EXPECT_FALSE(counts.contains(object_id{1}));
  EXPECT_EQ(counts.add(object_id{1}), 1u);
  EXPECT_EQ(counts.add(object_id{1}), 2u);
  EXPECT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts.remove(object_id{1}), 1u);
  EXPECT_TRUE(counts.contains(object_id{1}));
  EXPECT_EQ(counts.remove(object_id{1}), 0u);
  EXPECT_FALSE(counts.contains(object_id{1}));
  EXPECT_EQ(counts.size(), 0u);
}

TEST(ObjectCounts, ManyNeighborsAreCountedInManyTables) {
  object_counts counts;
  for (uint64_t id = 1; id <= 100'000; ++id)
    ASSERT_EQ(counts.add(object_id{id << 32 | id}), 1u);
  EXPECT_EQ(counts.size(), 100'000u);
  for (uint64_t id = 1; id <= 100'000; ++id)
    ASSERT_EQ(counts.remove(object_id{id << 32 | id}), 0u);
  EXPECT_EQ(counts.size(), 0u);
}

TEST(ObjectCounts, LeasesThatComeAndGoDoNotDisturbEachOther) {
  object_counts counts;
  auto lease = [](uint64_t number, auto&& each) {
    for (uint64_t i = 0; i < 300; ++i)
      each(object_id{1 + number * 1'024 * 3 + i * 7});
  };
  auto begin = [&](uint64_t number) { lease(number, [&](object_id id) { ASSERT_EQ(counts.add(id), 1u); }); };
  auto end = [&](uint64_t number) { lease(number, [&](object_id id) { ASSERT_EQ(counts.remove(id), 0u); }); };
  for (int round = 0; round < 3; ++round) {
    for (uint64_t number = 0; number < 12; ++number) // in more tables than keep their size
      begin(number);
    for (uint64_t number = 0; number < 11; ++number)
      end(number);
    lease(11, [&](object_id id) { ASSERT_TRUE(counts.contains(id)); });
    end(11);
    EXPECT_EQ(counts.size(), 0u);
    for (uint64_t number : {20, 21, 20}) { // single objects, in the table that is kept
      begin(number);
      lease(number, [&](object_id id) { ASSERT_TRUE(counts.contains(id)); });
      end(number);
      lease(number, [&](object_id id) { ASSERT_FALSE(counts.contains(id)); });
    }
  }
  EXPECT_EQ(counts.size(), 0u);
}

/// Compares with std::map, with ids that collide, while the tables grow and shrink.
TEST(ObjectCounts, AgreesWithAnOrdinaryMap) {
  std::mt19937_64 random(1);
  object_counts counts;
  std::map<uint64_t, uint32_t> expected;
  for (int step = 0; step < 200'000; ++step) {
    uint64_t range = step % 40'000 < 20'000 ? 5'000 : 50;
    uint64_t id = (1 + random() % range) << (random() % 2 * 32);
    bool grows = random() % 100 < (step % 40'000 < 20'000 ? 60 : 30);
    auto known = expected.find(id);
    ASSERT_EQ(counts.contains(object_id{id}), known != expected.end());
    if (grows) {
      ASSERT_EQ(counts.add(object_id{id}), ++expected[id]);
    } else if (!expected.empty()) {
      auto leaves = expected.lower_bound(id);
      if (leaves == expected.end())
        leaves = expected.begin();
      ASSERT_EQ(counts.remove(object_id{leaves->first}), --leaves->second);
      if (leaves->second == 0)
        expected.erase(leaves);
    }
    ASSERT_EQ(counts.size(), expected.size());
  }
  while (!expected.empty()) {
    auto first = expected.begin();
    for (; first->second != 0; --first->second)
      counts.remove(object_id{first->first});
    expected.erase(first);
    for (const auto& [id, count] : expected)
      if (id % 97 == 0) {
        ASSERT_TRUE(counts.contains(object_id{id}));
      }
  }
  EXPECT_EQ(counts.size(), 0u);
}
