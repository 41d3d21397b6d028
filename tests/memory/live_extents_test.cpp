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

} // namespace
} // namespace terrace::test
