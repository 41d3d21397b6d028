#include "policy/entry_table.hpp"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <vector>

using namespace terrace;

namespace {

entry_key name(uint64_t n) { return {n * 31, n}; }

} // namespace

TEST(EntryTable, FindsNeighborsAndAllOthersWhateverIsNear) {
  entry_table table;
  EXPECT_EQ(table.find_near(name(1), no_entry), no_entry);
  std::vector<entry_index> at(40);
  for (uint64_t n = 1; n < at.size(); ++n)
    at[n] = table.add(name(n));
  for (entry_index near : {entry_index{0}, entry_index{7}, entry_index{38}, entry_index{39}, no_entry})
    for (uint64_t n = 1; n < at.size(); ++n)
      EXPECT_EQ(table.find_near(name(n), near), at[n]);
  EXPECT_EQ(table.find_near(name(99), 7), no_entry);
}

TEST(EntryTable, FindsNothingWhereAnEntryWasRemoved) {
  entry_table table;
  auto first = table.add(name(1)), second = table.add(name(2));
  table.remove(first);
  EXPECT_EQ(table.find_near(name(1), first), no_entry);
  EXPECT_EQ(table.find_near({}, first), no_entry) << "a removed entry has an empty key";
  EXPECT_EQ(table.find_near(name(2), first), second);
  EXPECT_EQ(table.add(name(3)), first);
  EXPECT_EQ(table.find_near(name(3), second), first);
}

TEST(EntryTable, AgreesWithFindWhileEntriesComeAndGo) {
  std::mt19937_64 random(1);
  entry_table table;
  entry_index near = no_entry;
  for (int step = 0; step < 20'000; ++step) {
    entry_key key = name(1 + random() % 300);
    entry_index at = table.find_near(key, near);
    ASSERT_EQ(at, table.find(key));
    if (at == no_entry)
      near = table.add(key);
    else if (random() % 2 == 0)
      table.remove(at);
    else
      near = at;
  }
}

TEST(EntryTable, BucketsThatAreMadeAtOnceKeepWhatIsThere) {
  entry_table table, grown;
  for (uint64_t n = 1; n <= 100; ++n) {
    table.add(name(n));
    grown.add(name(n));
  }
  EXPECT_TRUE(table.reserve(10'000, 1'000)) << "the rest is made by later calls";
  EXPECT_EQ(table.find(name(100)), 99u);
  while (table.reserve(10'000, 1'000))
    ;
  size_t reserved = table.bytes();
  for (uint64_t n = 101; n <= 10'000; ++n) {
    ASSERT_EQ(table.find(name(n)), no_entry);
    table.add(name(n));
    grown.add(name(n));
  }
  for (uint64_t n = 1; n <= 10'000; ++n)
    ASSERT_EQ(table.find(name(n)), n - 1);
  EXPECT_EQ(table.bytes(), grown.bytes()) << "as many buckets as without";
  EXPECT_LT(reserved, 100 * 32 + 10'000 / 3 * 4 + 100'000)
      << "and no more than those before the entries come";
  EXPECT_FALSE(table.reserve(5, 1));
  EXPECT_EQ(table.find(name(7)), 6u);
}

TEST(EntryTable, FetchingChangesNothing) {
  entry_table table;
  std::vector<entry_key> keys;
  for (uint64_t n = 1; n <= 100; ++n)
    keys.push_back(name(n));
  table.fetch(keys); // works on an empty table
  std::vector<entry_index> at;
  for (entry_key key : keys)
    at.push_back(table.add(key));
  table.remove(at[50]);
  keys.push_back({});
  for (size_t count : {0, 1, 31, 32, 33, 101})
    table.fetch(std::span(keys).first(count));
  for (size_t n = 0; n < at.size(); ++n)
    EXPECT_EQ(table.find(keys[n]), n == 50 ? no_entry : at[n]);
}
