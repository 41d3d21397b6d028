#include "base/nearest_name.hpp"

#include <gtest/gtest.h>

#include <string>

namespace terrace {
namespace {

TEST(NearestName, ForgivesATypingMistakeAndNoMore) {
  constexpr std::string_view names[] = {"workers", "log_level", "bytes"};
  EXPECT_EQ(nearest_name("worker", names), "workers");
  EXPECT_EQ(nearest_name("loglevel", names), "log_level");
  EXPECT_EQ(nearest_name("byets", names), "bytes");
  EXPECT_EQ(nearest_name("byte", names), "bytes");
  EXPECT_EQ(nearest_name("frobnicate", names), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

} // namespace
} // namespace terrace
