#include "memory/free_runs.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace terrace::testing {
namespace {

TEST(FreeRuns, FindsTheFirstRunThatFits) {
  free_runs runs;
  EXPECT_FALSE(runs.first_fit(1));
  for (extent e : {extent{100, 5}, extent{10, 2}, extent{50, 5}, extent{80, 9}})
    runs.insert(e);
  EXPECT_EQ(runs.first_fit(1), (extent{10, 2}));
  EXPECT_EQ(runs.first_fit(3), (extent{50, 5}));
  EXPECT_EQ(runs.first_fit(9), (extent{80, 9}));
  EXPECT_FALSE(runs.first_fit(10));
  EXPECT_EQ(runs.largest(), 9u);
}

TEST(FreeRuns, FindsNeighbours) {
  free_runs runs;
  runs.insert({10, 5});
  EXPECT_EQ(runs.ending_at(15), (extent{10, 5}));
  EXPECT_FALSE(runs.ending_at(14));
  EXPECT_EQ(runs.beginning_at(10), (extent{10, 5}));
  EXPECT_FALSE(runs.beginning_at(11));
}

TEST(FreeRuns, AgreesWithAMap) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  free_runs runs;
  std::map<uint64_t, uint64_t> model;
  for (int step = 0; step < 5'000; ++step) {
    uint64_t at = random() % 200 * 100;
    if (model.contains(at)) {
      ASSERT_EQ(runs.remove(at), (extent{at, model[at]}));
      model.erase(at);
    } else {
      runs.insert({at, model[at] = 1 + random() % 100});
    }
    uint64_t wanted = 1 + random() % 100, largest = 0;
    std::optional<extent> expected;
    for (auto& [offset, size] : model) {
      largest = std::max(largest, size);
      if (!expected && size >= wanted)
        expected = extent{offset, size};
    }
    ASSERT_EQ(runs.first_fit(wanted), expected);
    ASSERT_EQ(runs.largest(), largest);
    ASSERT_EQ(runs.count(), model.size());
  }
}

} // namespace
} // namespace terrace::testing
