#include "base/window_refill.hpp"

#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace {
namespace {

/// Stores the first absent objects; as many others leave, from the end.
std::vector<bool> refilled(std::vector<bool> present, size_t count) {
  for (size_t i = present.size(), left = count; left != 0 && i-- > 0;)
    if (present[i]) {
      present[i] = false;
      --left;
    }
  for (size_t i = 0; count != 0; ++i)
    if (!present[i]) {
      present[i] = true;
      --count;
    }
  return present;
}

TEST(WindowRefill, AnAbsentEndIsNoGap) {
  EXPECT_EQ(objects_to_refill({}), 0U);
  EXPECT_EQ(objects_to_refill({true, true}), 0U);
  EXPECT_EQ(objects_to_refill({false, false}), 0U);
  EXPECT_EQ(objects_to_refill({true, true, false, false}), 0U);
}

TEST(WindowRefill, AGapTakesThePlacesOfTheEnd) {
  EXPECT_EQ(objects_to_refill({false, true}), 1U);
  EXPECT_EQ(objects_to_refill({true, false, false, true}), 1U);
  EXPECT_EQ(objects_to_refill({true, false, false, true, true, true, false}), 2U);
}

TEST(WindowRefill, LeavesNoGapAndAsManyObjects) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<bool> window(random() % 20);
    for (size_t i = 0; i < window.size(); ++i)
      window[i] = random() % 2 == 0;
    auto after = refilled(window, objects_to_refill(window));
    EXPECT_TRUE(std::is_sorted(after.begin(), after.end(), std::greater<>()));
    EXPECT_EQ(std::count(after.begin(), after.end(), true), std::count(window.begin(), window.end(), true));
  }
}

} // namespace
} // namespace terrace
