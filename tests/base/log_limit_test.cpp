#include "base/log_limit.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using namespace std::chrono_literals;

TEST(LogLimit, WritesSoManyLinesInAWindowAndCountsTheRest) {
  log_limit limit(2, 10s);
  log_limit::clock::time_point now{};
  EXPECT_EQ(limit.admit("a", now), "a");
  EXPECT_EQ(limit.admit("b", now + 9s), "b");
  EXPECT_EQ(limit.admit("c", now + 9s), std::nullopt);
  EXPECT_EQ(limit.admit("d", now + 9s), std::nullopt);
  EXPECT_EQ(limit.admit("e", now + 10s), "e (2 lines like this were left out)");
  EXPECT_EQ(limit.admit("f", now + 11s), "f");
}

} // namespace
} // namespace terrace
