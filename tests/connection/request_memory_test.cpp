#include "connection/request_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace terrace;

namespace {

struct RequestMemory : ::testing::Test {
  request_memory memory{100};
  std::vector<int> woken;

  bool take(int who, uint64_t bytes) {
    return memory.charge_objects(connection_id{static_cast<uint64_t>(who)}, bytes,
                                 [this, who] { woken.push_back(who); });
  }
  void leave(int who) { memory.leave(connection_id{static_cast<uint64_t>(who)}); }
  bool ask(int who) {
    return memory.has_room(connection_id{static_cast<uint64_t>(who)}, [this, who] { woken.push_back(who); });
  }
};

} // namespace

TEST_F(RequestMemory, HasRoomUntilItIsFull) {
  EXPECT_TRUE(ask(1));
  memory.change(0, 99);
  EXPECT_TRUE(ask(1));
  memory.change(99, 150); // the request that exceeds the bound
  EXPECT_FALSE(ask(1));
  EXPECT_TRUE(memory.full());
  EXPECT_EQ(memory.bytes(), 150u);
}

TEST_F(RequestMemory, WakesTheFirstInLineAndItPassesTheRoomOn) {
  memory.change(0, 100);
  EXPECT_FALSE(ask(1));
  EXPECT_FALSE(ask(2));
  EXPECT_FALSE(ask(1)) << "it is in line already";
  EXPECT_EQ(memory.waiting(), 2u);
  memory.change(50, 60);
  EXPECT_TRUE(woken.empty());
  memory.change(60, 10);
  EXPECT_EQ(woken, (std::vector{1}));
  memory.pass_on(connection_id{1});
  EXPECT_EQ(woken, (std::vector{1, 2}));
  memory.pass_on(connection_id{2});
  EXPECT_EQ(memory.waiting(), 0u);
}

TEST_F(RequestMemory, WhoEndsIsNotWoken) {
  memory.change(0, 100);
  EXPECT_FALSE(ask(1));
  EXPECT_FALSE(ask(2));
  memory.pass_on(connection_id{1});
  EXPECT_TRUE(woken.empty()) << "there is still no room";
  memory.change(100, 0);
  EXPECT_EQ(woken, (std::vector{2}));
}

TEST_F(RequestMemory, TellsWhenAFloodIsOver) {
  request_memory large{UINT64_MAX};
  constexpr uint64_t flood = request_memory::flood_bytes;
  EXPECT_FALSE(large.change(0, flood - 1));
  EXPECT_FALSE(large.change(flood - 1, 0));
  EXPECT_FALSE(large.change(0, flood));
  EXPECT_FALSE(large.change(flood, flood / 16));
  EXPECT_TRUE(large.change(flood / 16, 0));
  EXPECT_FALSE(large.change(0, 1));
  EXPECT_FALSE(large.change(1, 0));

  request_memory little{1000};
  EXPECT_FALSE(little.change(0, 249));
  EXPECT_FALSE(little.change(249, 0));
  EXPECT_FALSE(little.change(0, 250));
  EXPECT_TRUE(little.change(250, 0)) << "a quarter of the bound";
}

TEST_F(RequestMemory, ManyObjectsInARowAreAFlood) {
  request_memory little{1000};
  for (int i = 0; i < 2; ++i) {
    for (int request = 1; request <= 5; ++request) {
      EXPECT_FALSE(little.change(0, 20));
      EXPECT_TRUE(little.charge_objects(connection_id{1}, 50, nullptr));
      little.give_back_objects(50);
      EXPECT_EQ(little.change(20, 0), request == 5) << "a quarter of the bound was taken for objects";
    }
  }
}

// ---- objects ----

TEST_F(RequestMemory, ObjectsAreTakenWhileThereIsRoomForThem) {
  memory.change(0, 30);
  EXPECT_TRUE(take(1, 40));
  EXPECT_EQ(memory.bytes(), 70u);
  EXPECT_FALSE(memory.full());
  EXPECT_FALSE(take(2, 31));
  EXPECT_TRUE(memory.full()) << "somebody waits";
  EXPECT_EQ(memory.bytes(), 70u);
  memory.give_back_objects(40);
  EXPECT_EQ(woken, (std::vector{2}));
  EXPECT_TRUE(take(2, 31));
  EXPECT_EQ(memory.object_bytes(), 31u);
  EXPECT_EQ(memory.bytes(), 61u);
}

TEST_F(RequestMemory, MoreThanTheBoundIsTakenWhenNobodyElseHasAny) {
  memory.change(0, 200); // bytes of frames
  EXPECT_TRUE(take(1, 500));
  EXPECT_FALSE(take(2, 500));
  memory.change(200, 0);
  EXPECT_TRUE(woken.empty());
  memory.give_back_objects(500);
  EXPECT_EQ(woken, (std::vector{2}));
  EXPECT_TRUE(take(2, 500));
}

TEST_F(RequestMemory, WhoWaitsForObjectsIsNotPassed) {
  EXPECT_TRUE(take(1, 60));
  EXPECT_FALSE(take(2, 100));
  EXPECT_FALSE(take(3, 10)) << "it would fit, but the first would wait for ever";
  EXPECT_FALSE(take(2, 90));
  memory.give_back_objects(60);
  EXPECT_EQ(woken, (std::vector{2}));
  memory.change(0, 1);
  memory.change(1, 0);
  EXPECT_EQ(woken, (std::vector{2})) << "once";
  EXPECT_FALSE(take(3, 10));
  EXPECT_TRUE(take(2, 90));
  EXPECT_EQ(woken, (std::vector{2, 3})) << "there is room for the next one";
  EXPECT_TRUE(take(3, 10));
}

TEST_F(RequestMemory, WhoLeavesMakesWay) {
  EXPECT_TRUE(take(1, 60));
  EXPECT_FALSE(take(2, 100));
  EXPECT_FALSE(take(3, 10));
  leave(2);
  EXPECT_EQ(woken, (std::vector{3}));
  EXPECT_TRUE(take(3, 10));
  leave(3);
  memory.give_back_objects(70);
  EXPECT_EQ(memory.bytes(), 0u);
}

TEST_F(RequestMemory, FramesWaitBehindWhoWaitsForObjects) {
  EXPECT_TRUE(take(1, 60));
  EXPECT_FALSE(take(2, 50));
  EXPECT_FALSE(ask(3));
  memory.give_back_objects(60);
  EXPECT_EQ(woken, (std::vector{2}));
  EXPECT_TRUE(take(2, 50));
  EXPECT_EQ(woken, (std::vector{2, 3}));
  EXPECT_TRUE(ask(3));
}

TEST_F(RequestMemory, FramesWaitWhileObjectsTakeAll) {
  EXPECT_TRUE(take(1, 100));
  EXPECT_FALSE(ask(2));
  memory.give_back_objects(100);
  EXPECT_EQ(woken, (std::vector{2}));
}
