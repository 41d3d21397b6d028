#include "tier/space/let_pass.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

using namespace terrace;

namespace {

struct entry {
  uint64_t number = 0;
  uint64_t passing_left = 0;
};

struct ServeLine : ::testing::Test {
  fair_queue<entry> line;
  std::vector<uint64_t> offered, served;

  void push(uint64_t number, uint64_t cost, uint64_t connection = 1) {
    line.push({0, connection}, {number, cost}, cost);
  }
  /// Serves the entries for which `may` (number) is true.
  void serve(const tried_entries& tried, const std::function<turn(uint64_t)>& may) {
    serve_line(line, tried, [&](entry& one) {
      offered.push_back(one.number);
      turn got = may(one.number);
      if (got == turn::served)
        served.push_back(one.number);
      return got;
    });
  }
};

using numbers = std::vector<uint64_t>;

} // namespace

TEST_F(ServeLine, ServesAllThatItCan) {
  for (uint64_t number : {1, 2, 3})
    push(number, 10);
  serve({}, [](uint64_t number) { return number == 2 ? turn::ended : turn::served; });
  EXPECT_EQ(served, (numbers{1, 3}));
  EXPECT_TRUE(line.empty());
}

TEST_F(ServeLine, OthersPassTheFirstForAsMuchAsItCosts) {
  push(1, 10);
  for (uint64_t number : {2, 3, 4})
    push(number, 4);
  serve({}, [](uint64_t number) { return number == 1 ? turn::waits : turn::served; });
  EXPECT_EQ(served, (numbers{2, 3})) << "8 of 10 have passed";
  EXPECT_EQ(line.size(), 2u);
}

TEST_F(ServeLine, LooksAtSomeOfEachConnectionAndSomeInTotal) {
  for (uint64_t number : {1, 2, 3, 4})
    push(number, 1);
  push(5, 1, 2);
  auto nobody = [](uint64_t) { return turn::waits; };
  serve({.of_each = 2}, nobody);
  EXPECT_EQ(offered, (numbers{1, 5, 2})) << "the first, and then two of each";
  offered.clear();
  serve({.of_each = 8, .in_total = 2}, nobody);
  EXPECT_EQ(offered, (numbers{1, 5, 2}));
}
