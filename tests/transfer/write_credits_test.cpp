#include "transfer/write_queue.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <optional>

using namespace terrace;
using namespace terrace::test;

namespace {

struct WriteCredits : ::testing::Test {
  write_credits credits{100};

  using answer_ptr = std::shared_ptr<std::optional<errc>>;
  answer_ptr ask(uint64_t bytes, context_ptr of = nullptr) {
    auto answer = std::make_shared<std::optional<errc>>();
    credits.ask(bytes, std::move(of), [answer](errc code) { *answer = code; });
    return answer;
  }
  static context_ptr of(uint64_t connection) {
    auto made = context();
    made->connection = connection_id{connection};
    return made;
  }
};

} // namespace

TEST_F(WriteCredits, AreGivenAtOnceWhileTheyAreThere) {
  EXPECT_EQ(*ask(60), errc::ok);
  EXPECT_EQ(*ask(40), errc::ok);
  EXPECT_FALSE(*ask(1));
  EXPECT_EQ(credits.out(), 100u);
}

TEST_F(WriteCredits, AreGivenToSmallRequestsBeforeALargeOneForAsManyBytesAsItAsksFor) {
  ask(100);
  auto large = ask(80);
  auto small = ask(50), next = ask(40);
  credits.give_back(60);
  EXPECT_EQ(*small, errc::ok);
  EXPECT_FALSE(*next) << "80 were passed by 50";
  credits.give_back(50);
  EXPECT_FALSE(*next);
  EXPECT_FALSE(*large);
  credits.give_back(40);
  EXPECT_EQ(*large, errc::ok);
  EXPECT_FALSE(*next);
  credits.give_back(80);
  EXPECT_EQ(*next, errc::ok);
}

TEST_F(WriteCredits, AreSharedByTheConnectionsThatWait) {
  credits = write_credits(4 << 20);
  ask(4 << 20);
  std::vector<answer_ptr> greedy;
  for (int i = 0; i < 3; ++i)
    greedy.push_back(ask(2 << 20, of(1)));
  auto other = ask(2 << 20, of(2));
  credits.give_back(4 << 20);
  EXPECT_TRUE(*greedy[0]);
  EXPECT_TRUE(*other);
  EXPECT_FALSE(*greedy[1]);
}

TEST_F(WriteCredits, WhoeverBecomesTheFirstBecauseAnotherWasPassedIsServed) {
  credits = write_credits(10'000 << 10);
  ask(9000 << 10);
  auto large = ask(1500 << 10, of(1));
  EXPECT_EQ(*ask(548 << 10, of(1)), errc::ok);
  credits.give_back(600 << 10);
  auto other = ask(1000 << 10, of(2));
  EXPECT_FALSE(*other) << "the first may be passed by 952 KiB more";
  EXPECT_EQ(*ask(10 << 10, of(1)), errc::ok);
  EXPECT_EQ(*other, errc::ok) << "it is first now that the first connection was charged for what passed";
  EXPECT_FALSE(*large);
}

TEST_F(WriteCredits, FollowAnArenaThatShrinks) {
  ask(60);
  credits.set_bytes_max(50);
  auto waits = ask(10);
  EXPECT_FALSE(*waits);
  credits.give_back(60);
  EXPECT_EQ(*waits, errc::ok);
  EXPECT_FALSE(*ask(41));
}

TEST_F(WriteCredits, MoreThanThereIsGoesAlone) {
  auto first = ask(10);
  auto giant = ask(1000);
  EXPECT_FALSE(*giant);
  credits.give_back(10);
  EXPECT_EQ(*giant, errc::ok);
  EXPECT_FALSE(*ask(1));
}

TEST_F(WriteCredits, TakingWithoutWaitingDoesNotOvertake) {
  EXPECT_TRUE(credits.try_take(60));
  EXPECT_FALSE(credits.try_take(60));
  auto waiting = ask(60);
  EXPECT_FALSE(credits.try_take(10));
  credits.give_back(60);
  EXPECT_EQ(*waiting, errc::ok);
  EXPECT_TRUE(credits.try_take(10));
}

TEST_F(WriteCredits, WhoeverEndsWhileItWaitsIsAnsweredBySweep) {
  ask(100);
  auto of = context();
  auto ending = ask(50, of);
  auto next = ask(50);
  of->ended = errc::deadline;
  credits.sweep();
  EXPECT_EQ(*ending, errc::deadline);
  credits.give_back(100);
  EXPECT_EQ(*next, errc::ok);
  EXPECT_EQ(credits.out(), 50u);
}

TEST_F(WriteCredits, ARequestThatEndedTakesNone) {
  EXPECT_EQ(*ask(50, ended(errc::cancelled)), errc::cancelled);
  EXPECT_EQ(credits.out(), 0u);
}
