#include "policy/open_ages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace terrace::test {
namespace {

using chances = std::array<double, age_bins::count>;

chances returning_in(int bin, double chance) {
  chances all{};
  all[static_cast<size_t>(bin)] = chance;
  return all;
}

/// Tries every choice of a last bin for each of two outcomes.
double best_of_all(const std::vector<foresight::outcome>& two, foresight::delay known) {
  struct wait {
    double returns = 0, seconds = 0;
  };
  std::vector<std::vector<wait>> waits;
  for (const auto& of : two) {
    auto& sums = waits.emplace_back(1);
    double waiting = 1, seconds = 0;
    for (size_t bin = known.bin; bin < age_bins::count; ++bin) {
      seconds += waiting * (1 - (*of.chance)[bin] / 2) * age_bins::width_seconds(static_cast<int>(bin));
      waiting *= 1 - (*of.chance)[bin];
      sums.push_back({1 - waiting, seconds});
    }
  }
  double best = 0;
  for (const wait& a : waits[0])
    for (const wait& b : waits[1])
      best = std::max(best, (two[0].weight * a.returns + two[1].weight * b.returns) /
                                (two[0].weight * (known.seconds + a.seconds) +
                                 two[1].weight * (known.seconds + b.seconds)));
  return best;
}

TEST(Foresight, IsTheBestOfAllWaysToWaitForEachOutcome) {
  foresight::delay known{5, static_cast<size_t>(age_bins::of(5 * 954))};
  for (double share : {0.05, 0.5, 0.95})
    for (int soon : {8, 12, 20})
      for (double chance_late : {0.1, 0.9}) {
        chances first = returning_in(soon, 0.8), second = returning_in(25, chance_late);
        std::vector<foresight::outcome> two{{share, &first}, {1 - share, &second}};
        double best = best_of_all(two, known);
        EXPECT_NEAR(foresight::value(two, known, 0), best, best * 0.01) << share << ' ' << soon;
      }
}

TEST(Foresight, IsNeverLessThanTheValueWithoutIt) {
  chances never{};
  std::vector<foresight::outcome> one{{1, &never}};
  EXPECT_EQ(foresight::value(one, {5, 5}, 0.25), 0.25);
}

} // namespace
} // namespace terrace::test
