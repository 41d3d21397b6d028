#include "memory/arena_allocator.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace terrace::test {
namespace {

TEST(LiveExtents, FindsNothingInAnEmptyTable) {
  live_extents table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(LiveExtents, AgreesWithAMap) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  live_extents table;
  std::map<uint64_t, uint64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    uint64_t offset = random() % 500 * 4096;
    auto* found = table.find(offset);
    ASSERT_EQ(found != nullptr, model.contains(offset));
    if (found) {
      ASSERT_EQ(table.remove(found).requested, model[offset]);
      model.erase(offset);
    } else {
      table.insert({offset, model[offset] = random() % 1000, 0});
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (auto& [offset, requested] : model)
    ASSERT_EQ(table.find(offset)->requested, requested);
}

TEST(LiveExtents, RoomThatIsMadeAtOnceChangesNothingElse) {
  live_extents table;
  table.insert({4096, 7, 1});
  table.reserve(1000);
  for (uint64_t n = 2; n <= 1001; ++n) {
    const auto* before = table.find(4096);
    table.insert({n * 4096, n, 0});
    ASSERT_EQ(table.find(4096), before) << "nothing moves within the room that was made";
  }
  EXPECT_EQ(table.find(4096)->requested, 7u);
  EXPECT_EQ(table.find(1001 * 4096)->requested, 1001u);
  EXPECT_EQ(table.size(), 1001u);
}

} // namespace
} // namespace terrace::test
