#include "policy/survival_model.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace terrace::test {
namespace survival_model_test {

TEST(AgeBins, HoldTheAgesBetweenTheirEdges) {
  EXPECT_EQ(age_bins::of(0), 0);
  EXPECT_EQ(age_bins::of(953), 0); // a second is 953.67 ticks
  for (int bin = 1; bin < age_bins::count; ++bin) {
    EXPECT_EQ(age_bins::of(age_bins::edge(bin)), bin);
    EXPECT_EQ(age_bins::of(age_bins::edge(bin) - 1), bin - 1);
  }
  EXPECT_EQ(age_bins::of(~uint64_t{0}), age_bins::count - 1);
  EXPECT_NEAR(age_bins::width_seconds(0), 1, 0.01);
  EXPECT_NEAR(age_bins::width_seconds(3), 1.35 * 1.35 * 0.35, 0.01);
}

TEST(OpenAges, CountsEachUseInTheBinOfItsAge) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  open_ages ages(2);
  std::multiset<uint64_t> waiting;
  uint64_t now = 1'000;
  for (int step = 0; step < 20'000; ++step) {
    now += random() % (random() % 1000 == 0 ? 5'000'000 : 300);
    ages.advance(now);
    if (random() % 5 < 3) {
      ages.add(1, now, 1);
      waiting.insert(now);
    } else if (!waiting.empty()) {
      auto gone = waiting.lower_bound(now - random() % 100'000);
      gone = gone == waiting.end() ? std::prev(gone) : gone;
      ages.add(1, *gone, -1);
      waiting.erase(gone);
    }
  }
  std::array<double, age_bins::count> bins{}, none{};
  ages.count(1, bins);
  ages.count(0, none);
  EXPECT_EQ(std::count(none.begin(), none.end(), 0), age_bins::count);
  // Cumulated counts lie between those of ages that differ by a sixteenth (and an eighth of a second).
  double sum = 0;
  constexpr uint64_t reach = uint64_t{60} * 3'600'000'000'000 >> 20;
  for (int bin = 0; bin + 1 < age_bins::count; ++bin) {
    sum += bins[static_cast<size_t>(bin)];
    uint64_t edge = age_bins::edge(bin + 1), off = edge / 16 + 256;
    auto younger = [&](uint64_t age) {
      return std::count_if(waiting.begin(), waiting.end(),
                           [&](uint64_t t) { return now - t < std::min(age, reach); });
    };
    EXPECT_GE(sum, static_cast<double>(younger(edge - off))) << "bin " << bin;
    EXPECT_LE(sum, static_cast<double>(younger(edge + off))) << "bin " << bin;
  }
}

constexpr uint64_t second = 954; // ticks

/// Ten uses at 0: four return after 1.2 s (bin 1), two after 3 s (bin 4), one is forgotten after 2 s (bin 3), three are
/// still open after 5 s (bin 6).
survival_model ten_uses() {
  survival_model model(survival_model::families{{0, 1}});
  uint64_t start = 1'000'000;
  model.advance(start);
  for (int i = 0; i < 10; ++i)
    model.opened(0, start);
  model.advance(start + second * 12 / 10);
  for (int i = 0; i < 4; ++i)
    model.returned(0, start, start + second * 12 / 10);
  model.advance(start + second * 2);
  model.forgotten(0, start, start + second * 2);
  model.advance(start + second * 3);
  for (int i = 0; i < 2; ++i)
    model.returned(0, start, start + second * 3);
  model.advance(start + second * 5);
  model.refresh();
  return model;
}

TEST(SurvivalModel, CountsWhoReachedEachAgeWithTheOpenAndTheForgotten) {
  auto model = ten_uses();
  ASSERT_EQ(age_bins::of(second * 12 / 10), 1);
  ASSERT_EQ(age_bins::of(second * 2), 3);
  ASSERT_EQ(age_bins::of(second * 3), 4);
  ASSERT_EQ(age_bins::of(second * 5), 6);
  auto reached = model.reached(0);
  EXPECT_EQ(std::vector(reached.begin(), reached.begin() + 8),
            (std::vector<double>{10, 10, 6, 6, 5, 3, 3, 0}));
  EXPECT_EQ(model.returns(0)[1], 4);
  EXPECT_EQ(model.returns(0)[4], 2);
}

TEST(SurvivalModel, ShrinksEachBinTowardsAllClassesScaledByTheFactorOfAgesNearIt) {
  auto model = ten_uses();
  std::array<double, 7> returns{0, 4, 0, 0, 2, 0, 0}, reached{10, 10, 6, 6, 5, 3, 3}, general;
  for (size_t bin = 0; bin < general.size(); ++bin)
    general[bin] = (returns[bin] + 0.02) / (reached[bin] + 1);
  auto factor = [&](size_t at) {
    double seen = 50, expected = 50;
    for (size_t bin = 0; bin < general.size(); ++bin) {
      double weight = std::pow(0.7, bin > at ? bin - at : at - bin);
      seen += weight * returns[bin];
      expected += weight * reached[bin] * general[bin];
    }
    return seen / expected;
  };
  EXPECT_NEAR(model.chance(0)[1], (4 + 4000 * factor(1) * general[1]) / (10 + 4000), 1e-9);
  EXPECT_NEAR(model.chance(0)[4], (2 + 4000 * factor(4) * general[4]) / (5 + 4000), 1e-9);
  EXPECT_NEAR(model.chance(1)[1], general[1], 1e-9); // never seen: all classes as they are
}

TEST(SurvivalModel, ThoseWhoDidNotReturnForLongAreAlike) {
  // Nine of ten uses of class 0 return at once, but only one of ten of class 1. A quarter of the other uses
  // of both returns much later.
  survival_model model(survival_model::families{{0, 1}});
  uint64_t start = 1'000'000, soon = second, late = 100 * second;
  model.advance(start);
  for (int i = 0; i < 2'000; ++i)
    model.opened(i % 2 == 0 ? 0 : 1, start);
  model.advance(start + soon);
  for (int i = 0; i < 900; ++i)
    model.returned(0, start, start + soon);
  for (int i = 0; i < 100; ++i)
    model.returned(1, start, start + soon);
  model.advance(start + late);
  for (int i = 0; i < 25; ++i)
    model.returned(0, start, start + late);
  for (int i = 0; i < 225; ++i)
    model.returned(1, start, start + late);
  model.advance(start + 2 * late);
  model.refresh();
  EXPECT_GT(model.value(0, 0), 2 * model.value(1, 0));
  EXPECT_LT(model.value(0, 50 * second), 1.2 * model.value(1, 50 * second));
}

TEST(SurvivalModel, ValuesAFreshUseByItsLikelyReturnAndAnOldOneLittle) {
  auto model = ten_uses();
  // From age 0 the best plan waits through bins 0 and 1: S falls by p[1] (p[0] is nearly nothing).
  auto& p = model.chance(0);
  double waited =
      (1 - p[0] / 2) * age_bins::width_seconds(0) + (1 - p[0]) * (1 - p[1] / 2) * age_bins::width_seconds(1);
  double gained = 1 - (1 - p[0]) * (1 - p[1]);
  EXPECT_NEAR(model.value(0, 0), gained / waited, 1e-5);
  EXPECT_GT(model.value(0, second * 11 / 10), model.value(0, 0)); // the return is near
  EXPECT_LT(model.value(0, second * 10), model.value(0, 0) / 4);
}

TEST(SurvivalModel, WithoutDataTheYoungestUsesAreWorthMost) {
  survival_model model(survival_model::families{{0}});
  for (int bin = 1; bin < age_bins::count; ++bin)
    EXPECT_LT(model.value(0, age_bins::edge(bin)), model.value(0, age_bins::edge(bin - 1))) << "bin " << bin;
}

TEST(SurvivalModel, MovesAnOpenUseToItsClassOnceThatIsKnown) {
  survival_model model(survival_model::families{{0, 1}});
  model.advance(5'000);
  model.opened(0, 5'000);
  model.reclassified(0, 1, 5'000, 5'000);
  EXPECT_EQ(model.reached(0)[0], 0);
  EXPECT_EQ(model.reached(1)[0], 1);
}

TEST(SurvivalModel, MakesAPoolOfItsOwnUsesAndItsMembersAndLetsThemLeanOnIt) {
  survival_model model(survival_model::families{{0, 0, 0, 3}});
  uint64_t start = 1'000'000, age = second * 12 / 10;
  model.advance(start);
  for (size_t c : {0, 1, 1, 2, 2, 2, 3, 3, 3, 3})
    model.opened(c, start);
  model.advance(start + age);
  model.returned(1, start, start + age);
  model.returned(1, start, start + age);
  model.advance(start + age + 1);
  model.refresh();
  ASSERT_EQ(age_bins::of(age), 1);
  // All classes: 10 reached bin 1, 2 returned in it. The pool has 6 of these, and the same 2.
  using two_bins = std::array<double, 2>;
  auto lean = [](double uses, double returns, const two_bins& on, double before) -> two_bins {
    double factor_0 = (0.7 * returns + 50 * before) / (uses * (on[0] + 0.7 * on[1]) + 50);
    double factor_1 = (returns + 50 * before) / (uses * (on[1] + 0.7 * on[0]) + 50);
    return {4000 * factor_0 * on[0] / (uses + 4000), (returns + 4000 * factor_1 * on[1]) / (uses + 4000)};
  };
  two_bins general{0.02 / 11, 2.02 / 11};
  auto all_pools = lean(6, 2, general, 1); // it is the only pool
  auto pool = lean(6, 2, all_pools, 1);
  EXPECT_NEAR(model.chance(0)[1], pool[1], 1e-9);
  double sort_factor = 50.0 / (3 * pool[0] + 3 * pool[1] + 50); // it is the only member of its sort
  EXPECT_NEAR(model.chance(2)[1], lean(3, 0, pool, sort_factor)[1], 1e-9);
  EXPECT_GT(model.chance(1)[1], pool[1]);
  EXPECT_LT(model.chance(3)[1], general[1]); // it leans on all classes
}

TEST(SurvivalModel, ClassesThatWereNeverUsedAreWorthWhatTheirPoolIsAndTakeNothing) {
  survival_model model(survival_model::families{{0, 0, 2, 2}});
  uint64_t start = 1'000'000, age = second * 12 / 10;
  EXPECT_EQ(model.classes_in_use(), 0U);
  size_t empty = model.bytes();
  model.advance(start);
  for (int i = 0; i < 100; ++i)
    model.opened(1, start);
  model.advance(start + age);
  for (int i = 0; i < 50; ++i)
    model.returned(1, start, start + age);
  model.refresh();
  EXPECT_EQ(model.classes_in_use(), 2U); // and its pool
  EXPECT_EQ(model.value(3, 0), model.value(2, 0));
  EXPECT_GT(model.value(1, 0), model.value(0, 0));
  EXPECT_LT(model.bytes(), empty + 10'000);
  size_t before = model.bytes();
  model.reclassified(1, 3, start, start + age);
  EXPECT_GT(model.bytes(), before);
  EXPECT_EQ(model.reached(3)[0], 1);
}

TEST(SurvivalModel, MembersOfASortThatTellsHaveOneEstimate) {
  // Pools 0 and 2; their members 1 and 3 are of the sort. Uses of 1 return, those of both pools do not.
  for (size_t telling : {1, 2}) {
    survival_model model({{0, 0, 2, 2}, telling});
    uint64_t start = 1'000'000;
    model.advance(start);
    for (int i = 0; i < 10'000; ++i)
      for (size_t c : {0, 1, 2})
        model.opened(c, start);
    model.opened(3, start);
    model.advance(start + second);
    for (int i = 0; i < 10'000; ++i)
      model.returned(1, start, start + second);
    model.advance(start + 2 * second);
    model.refresh();
    if (telling == 1)
      EXPECT_GT(model.value(3, 0), 0.8 * model.value(1, 0));
    else
      EXPECT_LT(model.value(3, 0), 0.8 * model.value(1, 0));
  }
}

TEST(SurvivalModel, AUseIsWorthMoreWhileItIsToBeToldThatMostAreNotWorthIt) {
  // A tenth of the uses returns after a minute, and after two seconds it is known which ones. All others never return.
  survival_model model({{0, 0, 0}, 1}), untold({{0, 0, 0}, 1});
  uint64_t time = 1'000'000;
  for (int round = 0; round < 100; ++round, time += 100 * second)
    for (survival_model* of : {&model, &untold}) {
      of->advance(time);
      for (int i = 0; i < 100; ++i)
        of->opened(0, time);
      of->advance(time + 2 * second);
      for (int i = 0; i < 100 && of == &model; ++i)
        of->reclassified(0, i < 10 ? 1 : 2, time, time + 2 * second);
      of->advance(time + 60 * second);
      for (int i = 0; i < 10; ++i)
        of->returned(of == &model ? 1 : 0, time, time + 60 * second);
      of->advance(time + 99 * second);
    }
  model.refresh();
  untold.refresh();
  EXPECT_GT(model.value(0, 0), 2 * untold.value(0, 0));
  EXPECT_LT(model.value(0, 10 * second), 2 * untold.value(0, 10 * second)) << "by then it would be known";
}

} // namespace survival_model_test
} // namespace terrace::test
