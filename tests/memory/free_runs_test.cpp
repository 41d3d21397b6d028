#include "memory/free_runs.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace::test {
namespace {

TEST(FreeRuns, FindsTheFirstRunThatFits) {
  free_runs runs;
  EXPECT_FALSE(runs.first_fit(1));
  for (extent e : {extent{100, 5}, extent{10, 2}, extent{50, 5}, extent{80, 9}})
    runs.give(e);
  EXPECT_EQ(runs.first_fit(1), (extent{10, 2}));
  EXPECT_EQ(runs.first_fit(3), (extent{50, 5}));
  EXPECT_EQ(runs.first_fit(9), (extent{80, 9}));
  EXPECT_FALSE(runs.first_fit(10));
  EXPECT_EQ(runs.largest(), 9u);
}

TEST(FreeRuns, JoinsNeighboursButNotAcrossABoundary) {
  free_runs runs(100);
  runs.give({10, 10});
  runs.give({30, 10});
  runs.give({20, 10});
  EXPECT_EQ(runs.count(), 1u);
  runs.give({90, 20});
  EXPECT_EQ(runs.count(), 3u);
  EXPECT_EQ(runs.within({0, 200}), (std::vector<extent>{{10, 30}, {90, 10}, {100, 10}}));
  runs.take({95, 10}); // of two runs
  EXPECT_EQ(runs.within({0, 200}), (std::vector<extent>{{10, 30}, {90, 5}, {105, 5}}));
}

TEST(FreeRuns, TellsThePartThatLiesInARange) {
  free_runs runs;
  runs.give({10, 10});
  runs.give({30, 10});
  EXPECT_EQ(runs.within({15, 20}), (std::vector<extent>{{15, 5}, {30, 5}}));
  EXPECT_TRUE(runs.within({20, 10}).empty());
  EXPECT_TRUE(runs.within({40, 100}).empty());
}

TEST(FreeRuns, CountsTheWholeUnitsOfEachRun) {
  free_runs runs;
  runs.give({0, 25});
  runs.give({30, 7});
  EXPECT_EQ(runs.whole_units(), 32u);
  runs.measure_in(10);
  EXPECT_EQ(runs.whole_units(), 20u);
  runs.give({25, 5}); // 0 to 37
  EXPECT_EQ(runs.whole_units(), 30u);
  runs.take({0, 8});
  EXPECT_EQ(runs.whole_units(), 20u);
}

/// The runs of an array of bytes.
std::vector<extent> runs_of(const std::vector<bool>& free, uint64_t boundary) {
  std::vector<extent> runs;
  for (uint64_t at = 0; at < free.size(); ++at)
    if (free[at]) {
      bool joins = !runs.empty() && runs.back().offset + runs.back().size == at &&
                   (boundary == 0 || at % boundary != 0);
      if (joins)
        ++runs.back().size;
      else
        runs.push_back({at, 1});
    }
  return runs;
}

TEST(FreeRuns, AgreesWithAnArrayOfBytes) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  for (uint64_t boundary : {0, 97}) {
    free_runs runs(boundary);
    std::vector<bool> model(2'000);
    runs.measure_in(3);
    for (int step = 0; step < 20'000; ++step) {
      // Filling and emptying take turns, so that blocks split and merge.
      bool give = random() % 8 < (step / 2'000 % 2 == 0 ? 6 : 2);
      uint64_t at = random() % model.size(), end = at;
      for (uint64_t wish = 1 + random() % 6; end < model.size() && model[end] != give && wish > 0; --wish)
        ++end;
      if (at == end)
        continue;
      give ? runs.give({at, end - at}) : runs.take({at, end - at});
      std::fill(model.begin() + static_cast<ptrdiff_t>(at), model.begin() + static_cast<ptrdiff_t>(end),
                give);
      if (step % 16 != 0)
        continue;
      auto expected = runs_of(model, boundary);
      ASSERT_EQ(runs.within({0, model.size()}), expected) << "step " << step;
      uint64_t largest = 0, whole = 0, bytes = 0, wanted = 1 + random() % 12;
      std::optional<extent> first;
      for (auto& run : expected) {
        largest = std::max(largest, run.size), bytes += run.size, whole += run.size / 3 * 3;
        if (!first && run.size >= wanted)
          first = run;
      }
      ASSERT_EQ(runs.count(), expected.size());
      ASSERT_EQ(runs.largest(), largest);
      ASSERT_EQ(runs.bytes(), bytes);
      ASSERT_EQ(runs.whole_units(), whole);
      ASSERT_EQ(runs.first_fit(wanted), first);
    }
  }
}

} // namespace
} // namespace terrace::test
