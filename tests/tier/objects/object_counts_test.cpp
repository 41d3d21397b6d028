#include "tier/search/lease_ledger.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace terrace;

namespace object_counts_test {
namespace {

object_block one(uint64_t id) { return {object_block::of(object_id{id}), object_block::bit(object_id{id})}; }

TEST(ObjectCounts, CountsAndForgets) {
  object_counts counts;
  EXPECT_FALSE(counts.contains(object_id{1}));
  EXPECT_NE(counts.add(one(1)), 0u);
  EXPECT_EQ(counts.add(one(1)), 0u) << "it was counted before";
  EXPECT_EQ(counts.remove(one(1)), 0u) << "it is still counted";
  EXPECT_TRUE(counts.contains(object_id{1}));
  EXPECT_FALSE(counts.contains(object_id{2})) << "a neighbor";
  EXPECT_NE(counts.remove(one(1)), 0u);
  EXPECT_FALSE(counts.contains(object_id{1}));
}

TEST(ObjectCounts, ABlockIsCountedAtOnce) {
  object_counts counts;
  EXPECT_EQ(counts.add({5, 0b0111}), 0b0111u);
  EXPECT_EQ(counts.add({5, 0b1110}), 0b1000u);
  EXPECT_EQ(counts.add({5, 0b1110}), 0u);
  EXPECT_EQ(counts.counted({5, ~uint64_t{0}}), 0b1111u);
  EXPECT_EQ(counts.counted({6, ~uint64_t{0}}), 0u);
  EXPECT_EQ(counts.remove({5, 0b1111}), 0b0001u);
  EXPECT_EQ(counts.remove({5, 0b1110}), 0b1000u);
  EXPECT_EQ(counts.remove({5, 0b0110}), 0b0110u);
  EXPECT_EQ(counts.counted({5, ~uint64_t{0}}), 0u);
}

TEST(ObjectCounts, ManyNeighborsAreCountedInManyTables) {
  object_counts counts;
  for (uint64_t id = 1; id <= 100'000; ++id)
    ASSERT_NE(counts.add(one(id << 32 | id)), 0u);
  for (uint64_t id = 1; id <= 100'000; ++id)
    ASSERT_NE(counts.remove(one(id << 32 | id)), 0u);
  for (uint64_t id = 1; id <= 100'000; ++id)
    ASSERT_FALSE(counts.contains(object_id{id << 32 | id}));
}

TEST(ObjectCounts, LeasesThatComeAndGoDoNotDisturbEachOther) {
  object_counts counts;
  auto lease = [](uint64_t number, auto&& each) {
    for (uint64_t i = 0; i < 300; ++i)
      each(1 + number * 1'024 * 3 + i * 7);
  };
  auto begin = [&](uint64_t number) {
    lease(number, [&](uint64_t id) { ASSERT_NE(counts.add(one(id)), 0u); });
  };
  auto end = [&](uint64_t number) {
    lease(number, [&](uint64_t id) { ASSERT_NE(counts.remove(one(id)), 0u); });
  };
  for (int round = 0; round < 3; ++round) {
    for (uint64_t number = 0; number < 12; ++number) // in more tables than keep their size
      begin(number);
    for (uint64_t number = 0; number < 11; ++number)
      end(number);
    lease(11, [&](uint64_t id) { ASSERT_TRUE(counts.contains(object_id{id})); });
    end(11);
    for (uint64_t number : {20, 21, 20}) { // single objects, in the table that is kept
      begin(number);
      lease(number, [&](uint64_t id) { ASSERT_TRUE(counts.contains(object_id{id})); });
      end(number);
      lease(number, [&](uint64_t id) { ASSERT_FALSE(counts.contains(object_id{id})); });
    }
  }
}

/// The counts, kept in the simplest way.
struct simple_counts {
  std::map<uint64_t, uint32_t> all;

  uint64_t add(const object_block& some) {
    return each(some, [this](uint64_t id) { return ++all[id] == 1; });
  }
  uint64_t remove(const object_block& some) {
    return each(some, [this](uint64_t id) { return --all[id] == 0 && all.erase(id) != 0; });
  }
  uint64_t counted(const object_block& some) const {
    return each(some, [this](uint64_t id) { return all.contains(id); });
  }

 private:
  template <class Is>
  static uint64_t each(const object_block& some, Is&& is) {
    uint64_t those = 0;
    for (uint64_t n = 0; n < 64; ++n)
      if ((some.objects >> n & 1) != 0 && is(some.block * 64 + n))
        those |= uint64_t{1} << n;
    return those;
  }
};

/// With blocks that collide, while the tables grow and shrink.
TEST(ObjectCounts, AgreesWithAnOrdinaryMap) {
  std::mt19937_64 random(1);
  object_counts counts;
  simple_counts expected;
  for (int step = 0; step < 4'000; ++step) {
    bool many = step % 2'000 < 1'000;
    object_block some{random() % (many ? 200 : 20) << (random() % 2 * 32), random() & random()};
    some.objects |= 1;
    if (random() % 4 == 0)
      some.objects = ~uint64_t{0};
    const uint64_t known = expected.counted(some);
    ASSERT_EQ(counts.counted(some), known);
    if (random() % 100 < (many ? 60U : 30U)) {
      ASSERT_EQ(counts.add(some), expected.add(some));
    } else if (known != 0) {
      some.objects = known;
      ASSERT_EQ(counts.remove(some), expected.remove(some));
    }
  }
  while (!expected.all.empty()) {
    const uint64_t id = expected.all.begin()->first;
    object_block some{id / 64, ~uint64_t{0}};
    some.objects = expected.counted(some);
    ASSERT_EQ(counts.remove(some), expected.remove(some));
    if (!expected.all.empty()) {
      ASSERT_TRUE(counts.contains(object_id{expected.all.rbegin()->first}));
    }
  }
}

} // namespace
} // namespace object_counts_test
