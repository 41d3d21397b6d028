#include "bench/harness.hpp"

#include <gtest/gtest.h>

namespace terrace::bench {
namespace {

figure sample() {
  return {.name = "x", .unit = "us", .value = 60, .limit = 50, .floor = 1.35, .aim = 1.15, .rounds = 5};
}

TEST(Statistics, MedianIsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Statistics, PercentileIsASampleThatWasMeasured) {
  std::vector<double> hundred;
  for (int i = 100; i >= 1; --i)
    hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 0.5), 50);
  EXPECT_EQ(percentile(hundred, 0.99), 99);
  EXPECT_EQ(percentile(hundred, 1), 100);
  EXPECT_EQ(percentile({7}, 0.5), 7);
}

TEST(Figure, ALatencyIsJudgedByItsRatioFromBelow) {
  figure f = sample();
  EXPECT_DOUBLE_EQ(f.ratio().value(), 1.2);
  EXPECT_EQ(f.verdict(), "floor");
  f.value = 55;
  EXPECT_EQ(f.verdict(), "aim");
  f.value = 70;
  EXPECT_EQ(f.verdict(), "below floor");
}

TEST(Figure, ARateIsJudgedByItsRatioFromAbove) {
  figure f{.name = "y",
           .unit = "GB/s",
           .value = 9,
           .limit = 10,
           .floor = 0.9,
           .aim = 0.97,
           .rounds = 5,
           .direction = better::higher};
  EXPECT_EQ(f.verdict(), "floor");
  f.value = 8;
  EXPECT_EQ(f.verdict(), "below floor");
}

TEST(Figure, AnAbsoluteOneHasNoRatio) {
  figure f{.name = "z",
           .unit = "%",
           .value = 0.1,
           .limit = 0,
           .floor = 0.2,
           .aim = 0,
           .rounds = 5,
           .absolute = true};
  EXPECT_FALSE(f.ratio());
  EXPECT_EQ(f.verdict(), "floor");
}

TEST(Figure, IsOneLineOfJson) {
  EXPECT_EQ(to_json(sample()),
            "{\"name\":\"x\",\"value\":60.000,\"limit\":50.000,\"unit\":\"us\",\"ratio\":1.200,"
            "\"floor\":1.350,\"aim\":1.150,\"rounds\":5,\"above_limit_us\":10.000}");
}

TEST(Figure, TheTableIsAligned) {
  figure rate{
      .name = "a_longer_name", .unit = "GB/s", .value = 123, .limit = 200, .rounds = 5, .bounded = false};
  auto table = to_table({sample(), rate});
  auto first = table.substr(0, table.find('\n'));
  auto second = table.substr(first.size() + 1, table.find('\n', first.size() + 1) - first.size() - 1);
  EXPECT_EQ(first.find("unit"), second.find("us")) << table;
}

TEST(Interleave, TakesTurnsAndGivesMediansOfEachValue) {
  std::string order;
  double n = 0;
  auto sides = interleave(
      3,
      [&] {
        order += 'v';
        ++n;
        return std::vector{n, n * 10};
      },
      [&] {
        order += 'l';
        return std::vector{1.0};
      });
  EXPECT_EQ(order, "lvlvlv");
  EXPECT_EQ(sides.value, (std::vector{2.0, 20.0}));
  EXPECT_EQ(sides.limit, (std::vector{1.0}));
}

} // namespace
} // namespace terrace::bench
