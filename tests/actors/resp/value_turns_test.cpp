#include "actors/resp/value_transfer.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace terrace::resp {
namespace {

digest key(uint8_t number) {
  digest made;
  made.bytes[0] = number;
  return made;
}

struct ValueTurns : ::testing::Test {
  std::unique_ptr<value_turns::place> join(uint8_t of, int name) {
    return turns->join(key(of), [this, name] { told.push_back(name); });
  }
  std::shared_ptr<value_turns> turns = std::make_shared<value_turns>();
  std::vector<int> told;
};

TEST_F(ValueTurns, ComeInOrderAndOneIsToldAtATime) {
  EXPECT_FALSE(turns->waited_for(key(1)));
  auto first = join(1, 1), second = join(1, 2), third = join(1, 3), other = join(2, 9);
  EXPECT_TRUE(first->has_turn() && other->has_turn()) << "at once, and nobody is told";
  EXPECT_FALSE(second->has_turn() || third->has_turn());
  EXPECT_TRUE(told.empty());
  first.reset();
  EXPECT_EQ(told, std::vector<int>({2}));
  EXPECT_TRUE(second->has_turn());
  EXPECT_FALSE(third->has_turn());
  second.reset();
  EXPECT_EQ(told, std::vector<int>({2, 3}));
  EXPECT_TRUE(turns->waited_for(key(1)));
  third.reset();
  EXPECT_FALSE(turns->waited_for(key(1)));
  EXPECT_TRUE(turns->waited_for(key(2)));
}

TEST_F(ValueTurns, WhoeverLeavesEarlierIsPassedOver) {
  auto first = join(1, 1), second = join(1, 2), third = join(1, 3);
  second.reset();
  EXPECT_TRUE(told.empty()) << "it had no turn to pass on";
  first.reset();
  EXPECT_EQ(told, std::vector<int>({3}));
  auto again = join(1, 4);
  EXPECT_FALSE(again->has_turn()) << "whoever comes again is behind the others";
}

TEST_F(ValueTurns, PassOnBetweenThreads) {
  constexpr int threads = 4, rounds = 1000;
  std::atomic<int> inside{0}, done{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        std::atomic<bool> mine{false};
        auto place = turns->join(key(1), [&mine] {
          mine = true;
          mine.notify_one();
        });
        if (!place->has_turn())
          mine.wait(false);
        EXPECT_EQ(inside.fetch_add(1), 0);
        inside.fetch_sub(1);
        ++done;
      }
    });
  for (std::thread& one : all)
    one.join();
  EXPECT_EQ(done, threads * rounds);
  EXPECT_FALSE(turns->waited_for(key(1)));
}

} // namespace
} // namespace terrace::resp
