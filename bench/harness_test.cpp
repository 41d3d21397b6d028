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
            "\"floor\":1.350,\"aim\":1.150,\"rounds\":5,\"above_limit_us\":10.000,\"reached\":\"floor\"}");
}

TEST(Figure, TellsTheSpreadOfItsRounds) {
  figure f = sample();
  f.unit = "times";
  f.range = std::pair(55.0, 61.5);
  EXPECT_TRUE(to_json(f).ends_with("\"rounds\":5,\"least\":55.000,\"most\":61.500,\"reached\":\"floor\"}"))
      << to_json(f);
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
  EXPECT_EQ(sides.judged({}).value, 2);
  EXPECT_EQ(sides.judged({}, 1).value, 20);
  EXPECT_EQ(sides.judged({}).limit, 1);
  EXPECT_EQ(sides.judged({}, 1).limit, 0) << "the limit has no second value";
}

TEST(Rounds, GiveMediansRangeAndTheSpreadOfTheRatio) {
  // Value and limit vary by a factor of two, but together: the ratio hardly does.
  figure f = of_rounds({.name = "x", .unit = "us", .floor = 1.3, .aim = 1.2}, {12, 24, 11, 22, 13},
                       {10, 20, 10, 20, 10});
  EXPECT_EQ(f.rounds, 5);
  EXPECT_EQ(f.value, 13);
  EXPECT_EQ(f.limit, 10);
  EXPECT_EQ(f.range, std::pair(11.0, 24.0));
  EXPECT_EQ(f.ratio(), 1.2) << "not 1.3, which is of no round's sides";
  EXPECT_NEAR(f.spread.value(), 1.2 - 1.1, 1e-9);
}

TEST(Rounds, GiveTheSpreadOfTheValueWhereThatIsJudged) {
  figure f = of_rounds({.absolute = true}, {1, 2, 3, 4, 5}, {9, 8, 7, 6, 5});
  EXPECT_EQ(f.spread, 2.0);
  EXPECT_TRUE(to_json(f).find("\"value_spread\":2.000") != std::string::npos) << to_json(f);
}

TEST(Verdict, ASpreadWiderThanTheDistanceFromTheFloorDecidesNothing) {
  figure f = sample(); // ratio 1.2, floor 1.35
  f.spread = 0.149;
  EXPECT_EQ(f.verdict(), "floor");
  f.spread = 0.151;
  EXPECT_EQ(f.verdict(), "undecided");
  f.value = 75; // the ratio is 1.5
  EXPECT_EQ(f.verdict(), "undecided") << "nor does it show that the floor is missed";
  f.spread = 0.1;
  EXPECT_EQ(f.verdict(), "below floor");
}

TEST(Verdict, AnAimIsReachedOnlyBeyondTheSpread) {
  figure f = sample();
  f.value = 55; // ratio 1.1, aim 1.15
  f.spread = 0.1;
  EXPECT_EQ(f.verdict(), "floor");
  f.spread = 0.04;
  EXPECT_EQ(f.verdict(), "aim");
}

TEST(Summary, CountsEachVerdict) {
  figure reached = sample(), missed = sample(), open = sample(), beside = sample();
  missed.value = 90;
  open.spread = 1;
  beside.bounded = false;
  EXPECT_EQ(to_summary({reached, missed, missed, open, beside}),
            "0 reach their aim, 1 their floor, 2 are below it, 1 are undecided; 1 have no bound");
}

} // namespace
} // namespace terrace::bench
