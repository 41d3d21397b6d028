// Tests whose work is next: shares, order and bounds, also for random work.
#include "base/fair_queue.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

using namespace terrace;

namespace {

struct work {
  flow of;
  uint64_t cost = 0;
  uint64_t number = 0;
};

struct FairQueue : ::testing::Test {
  static constexpr uint64_t quantum = 100;
  fair_queue<work> line{quantum};
  uint64_t next = 0;

  void push(flow of, uint64_t cost) { line.push(of, {of, cost, next++}, cost); }
  std::vector<uint64_t> drain() {
    std::vector<uint64_t> order;
    while (!line.empty())
      order.push_back(line.pop().number);
    return order;
  }
};

TEST_F(FairQueue, OneConnectionIsServedInOrder) {
  for (int i = 0; i < 5; ++i)
    push({1, 1}, 1000 * (5 - i));
  EXPECT_EQ(drain(), (std::vector<uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(line.front(), nullptr);
}

TEST_F(FairQueue, ConnectionsTakeTurns) {
  for (int i = 0; i < 3; ++i)
    push({1, 1}, quantum); // 0, 1, 2
  push({1, 2}, quantum);   // 3
  push({1, 3}, quantum);   // 4
  EXPECT_EQ(line.flows(), 3u);
  EXPECT_EQ(drain(), (std::vector<uint64_t>{0, 3, 4, 1, 2}));
}

TEST_F(FairQueue, GroupsGetEqualSharesHoweverManyConnectionsTheyHave) {
  for (uint64_t connection = 1; connection <= 4; ++connection)
    for (int i = 0; i < 2; ++i)
      push({1, connection}, quantum);
  push({2, 9}, quantum); // 8
  push({2, 9}, quantum); // 9
  auto order = drain();
  EXPECT_LE(std::find(order.begin(), order.end(), 8) - order.begin(), 1);
  EXPECT_LE(std::find(order.begin(), order.end(), 9) - order.begin(), 3);
}

TEST_F(FairQueue, ASmallItemGoesBeforeALargeOneThatCameWithIt) {
  push({1, 1}, 100 * quantum);
  push({1, 2}, 1);
  EXPECT_EQ(drain(), (std::vector<uint64_t>{1, 0}));
}

TEST_F(FairQueue, ManySmallItemsAreChargedLikeALargeOne) {
  push({1, 1}, 10 * quantum); // 0
  for (int i = 0; i < 100; ++i)
    push({1, 2}, quantum / 4);
  auto order = drain();
  auto place = std::find(order.begin(), order.end(), 0) - order.begin();
  EXPECT_GE(place, 36);
  EXPECT_LE(place, 44); // ten quanta of four
}

TEST_F(FairQueue, TheFrontStaysTheFrontUntilItIsTaken) {
  push({1, 1}, 50 * quantum);
  ASSERT_NE(line.front(), nullptr);
  EXPECT_EQ(line.front()->number, 0u);
  push({1, 2}, 1);
  push({2, 3}, 1);
  EXPECT_EQ(line.front()->number, 0u);
  EXPECT_EQ(line.pop().number, 0u);
}

TEST_F(FairQueue, ChosenItemsPassTheFrontAndAreCharged) {
  push({1, 1}, 50 * quantum); // 0
  line.front();
  push({1, 2}, 500); // 1
  push({1, 2}, 3);   // 2
  auto small = line.take_first(
      [](const work& item, uint64_t cost) {
        return cost == item.cost && cost < 10 ? turn::served : turn::waits;
      },
      2);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->number, 2u);
  EXPECT_FALSE(line.take_first([](const work&, uint64_t) { return turn::waits; }, 2));
  EXPECT_EQ(line.front()->number, 0u);
  EXPECT_EQ(line.size(), 2u);
}

TEST_F(FairQueue, SomeOfEachConnectionAreOfferedTheirTurn) {
  for (int i = 0; i < 5; ++i)
    push({1, 1}, quantum); // 0 to 4
  push({1, 2}, quantum);   // 5
  push({2, 1}, quantum);   // 6
  push({2, 1}, quantum);   // 7
  line.front();
  std::vector<uint64_t> offered;
  auto none = line.take_first(
      [&](const work& item, uint64_t) {
        offered.push_back(item.number);
        return turn::waits;
      },
      3);
  EXPECT_FALSE(none);
  EXPECT_EQ(offered, (std::vector<uint64_t>{0, 5, 6, 1, 7, 2}));
  EXPECT_EQ(line.waiting_of({1, 1}), 5u);
  EXPECT_EQ(line.waiting_of({1, 3}), 0u);
}

TEST_F(FairQueue, WhatEndsWithoutBeingServedIsNotCharged) {
  for (int i = 0; i < 8; ++i)
    push({1, 1}, quantum); // 0 to 7
  push({1, 2}, quantum);   // 8
  line.front();
  for (int i = 0; i < 4; ++i)
    line.take_first(
        [](const work& item, uint64_t) { return item.of.connection == 1 ? turn::ended : turn::waits; }, 1);
  EXPECT_EQ(drain(), (std::vector<uint64_t>{4, 8, 5, 6, 7}));
}

TEST_F(FairQueue, ServesPieceByPiece) {
  push({1, 1}, quantum);
  push({1, 2}, quantum);
  std::vector<uint64_t> order;
  std::map<uint64_t, int> served;
  while (!line.empty()) {
    work part = line.pop();
    order.push_back(part.number);
    if (++served[part.number] < 3)
      line.push_front(part.of, part, quantum);
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{0, 1, 0, 1, 0, 1}));
}

TEST_F(FairQueue, VisitsTheFrontFirst) {
  push({1, 1}, 100 * quantum);
  push({1, 2}, 1);
  push({2, 1}, 1);
  std::vector<uint64_t> seen;
  line.for_each(
      [&](const work& item) {
        seen.push_back(item.number);
        return true;
      },
      1);
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], line.front()->number);
}

/// Random pushes, removals and erasures: nothing is lost or served twice, and each connection's order is kept.
TEST_F(FairQueue, LosesNothing) {
  std::mt19937_64 random(1);
  std::set<uint64_t> waiting;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> last;
  for (int step = 0; step < 50'000; ++step) {
    auto dice = random() % 100;
    if (dice < 50) {
      waiting.insert(next);
      push({random() % 3, random() % 5}, 1 + random() % (random() % 10 == 0 ? 5000 : 50));
    } else if (dice < 90 && !line.empty()) {
      work done = line.pop();
      EXPECT_EQ(waiting.erase(done.number), 1u);
      auto& before = last[{done.of.group, done.of.connection}];
      EXPECT_GE(done.number, before);
      before = done.number;
    } else if (dice < 95) {
      auto taken = line.take_first(
          [&](const work& item, uint64_t) { return item.number % 7 == 0 ? turn::served : turn::waits; },
          50'000);
      if (taken) {
        EXPECT_EQ(waiting.erase(taken->number), 1u);
      }
    } else {
      auto part = random() % 50;
      line.erase_if([&](const work& item) {
        bool leaves = item.number % 50 == part;
        if (leaves)
          waiting.erase(item.number);
        return leaves;
      });
    }
    ASSERT_EQ(line.size(), waiting.size());
    ASSERT_EQ(line.empty(), line.front() == nullptr);
  }
}

/// Connections that always wait get equal shares, within a quantum and the largest items.
TEST_F(FairQueue, SharesAreEqualWithinTheBound) {
  constexpr uint64_t largest = 1000;
  std::mt19937_64 random(2);
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> served;
  std::vector<flow> flows{{1, 1}, {1, 2}, {1, 3}, {2, 1}};
  auto more = [&](const flow& of) {
    push(of, of.connection == 1 ? 1 + random() % 20 : 1 + random() % largest);
  };
  for (const flow& of : flows)
    more(of);
  for (int step = 0; step < 100'000; ++step) {
    work done = line.pop();
    served[{done.of.group, done.of.connection}] += done.cost;
    more(done.of);
    more(done.of); // nobody ever runs out of work
    if (line.size() > 5000)
      break;
  }
  auto of = [&](uint64_t group, uint64_t connection) { return served[{group, connection}]; };
  constexpr uint64_t bound = 2 * (quantum + largest);
  EXPECT_NEAR(static_cast<double>(of(1, 1)), static_cast<double>(of(1, 2)), bound);
  EXPECT_NEAR(static_cast<double>(of(1, 1)), static_cast<double>(of(1, 3)), bound);
  EXPECT_NEAR(static_cast<double>(of(1, 1) + of(1, 2) + of(1, 3)), static_cast<double>(of(2, 1)), bound);
}

/// However much others have queued, an item waits for a bounded part of it.
TEST_F(FairQueue, AnItemWaitsForABoundedPartOfOthersWork) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    constexpr uint64_t others = 5, largest = 400;
    for (uint64_t connection = 1; connection <= others; ++connection)
      for (int i = 0; i < 50; ++i)
        push({1, connection}, 1 + random() % largest);
    for (uint64_t served = random() % 20; served != 0; --served)
      line.pop();
    uint64_t mine = next, cost = 1 + random() % largest, before = 0;
    push({1, 99}, cost);
    while (true) {
      work done = line.pop();
      if (done.number == mine)
        break;
      before += done.cost;
    }
    EXPECT_LE(before, others * (cost + quantum + largest));
    line.erase_if([](const work&) { return true; });
  }
}

} // namespace
