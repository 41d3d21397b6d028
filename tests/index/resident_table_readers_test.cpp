// Threads that read a table while its owner changes it.
#include "index/resident_table.hpp"
#include "resident_keys.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

using namespace terrace;

namespace resident_table_readers_test {

object_key key(uint64_t number) { return terrace::test::numbered_key(number); }

object_id add(resident_table& table, uint64_t number) {
  object_id id = table.insert({key(number), {}, number * 4096, 4096, 4000});
  table.publish(id);
  return id;
}

constexpr uint64_t lasting =
    200; ///< numbers below it stay, the next 200 come and go, those behind never come
constexpr uint64_t passing = 2000;

struct sights {
  uint64_t looks = 0;
  uint64_t lost = 0;     ///< lasting objects that were not seen
  uint64_t strange = 0;  ///< different objects seen under a key
  uint64_t imagined = 0; ///< objects seen that never came
};

void look(const resident_table& table, std::mt19937_64& random, sights& into) {
  std::vector<uint64_t> numbers(96);
  std::vector<object_key> keys;
  for (uint64_t& number : numbers) {
    number = random() % (lasting + passing + 200);
    keys.push_back(key(number));
  }
  std::vector<object_id> ids(keys.size());
  bool read = table.read([&](const resident_table& now) {
    now.find_published(keys, ids);
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] != object_id{})
        into.strange += now.get(ids[i]) == nullptr || now.get(ids[i])->offset() != numbers[i] * 4096;
  });
  if (!read)
    return;
  ++into.looks;
  for (size_t i = 0; i < ids.size(); ++i) {
    bool found = ids[i] != object_id{};
    into.lost += numbers[i] < lasting && !found;
    into.imagined += numbers[i] >= lasting + passing && found;
  }
}

TEST(ResidentTableReaders, SeeWhatStaysAndNothingElseWhileTheOwnerChangesTheTable) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  resident_table table;
  for (uint64_t number = 0; number < lasting; ++number)
    add(table, number);
  std::atomic<bool> done{false};
  std::atomic<uint64_t> looks{0};
  std::vector<sights> seen(2);
  std::vector<std::thread> readers;
  for (size_t i = 0; i < seen.size(); ++i)
    readers.emplace_back([&, i] {
      std::mt19937_64 random(seed + i + 1);
      while (!done) {
        look(table, random, seen[i]);
        looks = seen[i].looks;
      }
    });
  // The table grows (buckets divide), shrinks, and reuses slots, with holds in between.
  std::mt19937_64 random(seed);
  std::vector<object_id> there(passing);
  for (int n = 0; n < 40'000 || looks == 0; ++n) {
    uint64_t which = random() % passing;
    if (there[which] == object_id{}) {
      there[which] = add(table, lasting + which);
      continue;
    }
    table.hold(there[which]);
    table.release(there[which]);
    if (random() % 4 == 0)
      table.remove(there[which]);
    table.erase(there[which]);
    there[which] = {};
  }
  done = true;
  for (auto& reader : readers)
    reader.join();
  for (const sights& one : seen) {
    EXPECT_EQ(one.lost, 0u);
    EXPECT_EQ(one.strange, 0u);
    EXPECT_EQ(one.imagined, 0u);
  }
  EXPECT_GT(looks, 0u);
}

TEST(ResidentTableReaders, AreTurnedAwayWhileItIsShut) {
  resident_table table;
  add(table, 1);
  bool looked = false;
  auto look = [&](const resident_table&) { looked = true; };
  {
    auto shut = table.shut();
    EXPECT_FALSE(table.read(look));
    EXPECT_FALSE(looked);
  }
  EXPECT_TRUE(table.read(look));
  EXPECT_TRUE(looked);
}

} // namespace resident_table_readers_test
