#include "bench/scaling_plot.hpp"

#include <gtest/gtest.h>

namespace terrace::bench {
namespace {

figure at(const char* name, double value) { return {.name = name, .value = value, .limit = 10}; }

TEST(ScalingPlot, HasALineForEachKindOfRequest) {
  auto svg = to_scaling_plot({at("scaling_lookups_1", 5), at("scaling_loads_1", 8),
                              at("scaling_lookups_2", 4), at("scaling_loads_2", 7), at("idle_cpu", 1)});
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("lookups"), std::string::npos);
  EXPECT_NE(svg.find("loads"), std::string::npos);
  EXPECT_EQ(svg.find("idle"), std::string::npos);
}

TEST(ScalingPlot, IsEmptyWithoutFiguresOrWithGaps) {
  EXPECT_EQ(to_scaling_plot({at("idle_cpu", 1)}), "");
  EXPECT_EQ(to_scaling_plot({at("scaling_lookups_1", 5), at("scaling_loads_1", 8), at("scaling_loads_2", 8)}),
            "");
  EXPECT_EQ(to_scaling_plot({at("scaling_loads_1", 8), at("scaling_loads_2", 8), at("scaling_lookups_1", 5)}),
            "");
}

} // namespace
} // namespace terrace::bench
