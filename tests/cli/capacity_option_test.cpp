#include "cli/capacity_option.hpp"

#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

TEST(CapacityOption, TakesSharesAndSizes) {
  auto parsed = parse_capacities("--capacity", "1%, 2.5 %,512MiB");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 3U);
  EXPECT_DOUBLE_EQ((*parsed)[0].share, 0.01);
  EXPECT_EQ((*parsed)[0].label, "1 %");
  EXPECT_DOUBLE_EQ((*parsed)[1].share, 0.025);
  EXPECT_EQ((*parsed)[2].share, 0);
  EXPECT_EQ((*parsed)[2].bytes, 512U << 20);
  EXPECT_EQ((*parsed)[2].label, "512 MiB");
}

TEST(CapacityOption, RefusesTheRest) {
  for (const char* text : {"", "1%,", "0%", "-1%", "101%", "x%", "0", "lots", "nan%"}) {
    auto parsed = parse_capacities("--capacity", text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().text.find("--capacity: expected "), 0U) << parsed.error().text;
  }
}

TEST(SplitList, CutsAtCommas) {
  EXPECT_EQ(split_list("a, b ,c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(split_list(""), std::vector<std::string>{""});
}

} // namespace
} // namespace terrace::cli
