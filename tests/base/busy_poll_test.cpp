#include "base/busy_poll.hpp"

#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <thread>

namespace terrace::test {
namespace {

constexpr int64_t us = 1000;
constexpr int64_t ms = 1000 * us;

/// Polls every microsecond and finds something after `looks` looks; returns the time at its end.
int64_t poll(busy_poll& by, int64_t now, int looks, int64_t look_ns = us) {
  bool paid = looks == 0;
  for (now += look_ns; !paid && by.goes_on(now); now += look_ns)
    paid = --looks == 0;
  by.ends(paid);
  return now;
}

constexpr int never = 1 << 30;

TEST(BusyPoll, IsOffByDefault) {
  busy_poll by;
  EXPECT_FALSE(by.enabled());
  EXPECT_FALSE(by.begins(0));
}

TEST(BusyPoll, LooksForItsTimeAfterTheLastWork) {
  busy_poll by(50 * us);
  ASSERT_TRUE(by.begins(1000 * us));
  EXPECT_TRUE(by.goes_on(1000 * us + 1));
  EXPECT_TRUE(by.goes_on(1050 * us - 1));
  EXPECT_FALSE(by.goes_on(1050 * us));
}

TEST(BusyPoll, NeverLooksLongerThanAMillisecond) {
  busy_poll by(1000 * ms);
  ASSERT_TRUE(by.begins(0));
  EXPECT_FALSE(by.goes_on(ms));
}

TEST(BusyPoll, BecomesRareWhereItDoesNotPayAndReturnsWhereItDoes) {
  busy_poll by(50 * us);
  int64_t now = 0;
  int polled = 0;
  for (int wait = 0; wait < 1000; ++wait, now += 10 * ms)
    if (by.begins(now)) {
      ++polled;
      now = poll(by, now, never);
    }
  EXPECT_GT(polled, 10);
  EXPECT_LT(polled, 30); // polls among 1,000 waits
  while (!by.begins(now))
    now += ms;
  now = poll(by, now, 5); // requests come again
  for (int wait = 0; wait < 100; ++wait) {
    EXPECT_TRUE(by.begins(now));
    now = poll(by, now, 5);
  }
}

TEST(BusyPoll, OneMissAmongHitsChangesNothing) {
  busy_poll by(50 * us);
  int64_t now = 0;
  for (int wait = 0; wait < 100; ++wait) {
    ASSERT_TRUE(by.begins(now)) << wait;
    now = poll(by, now, wait % 2 == 0 ? never : 3);
  }
}

TEST(BusyPoll, SuspectsThatSomethingElseRanAfterAGap) {
  busy_poll by(500 * us);
  ASSERT_TRUE(by.begins(0));
  poll(by, 0, 20);
  EXPECT_FALSE(by.suspects());
  ASSERT_TRUE(by.begins(ms));
  EXPECT_TRUE(by.goes_on(ms + 2 * us));
  EXPECT_TRUE(by.goes_on(ms + 12 * us));
  EXPECT_TRUE(by.suspects());
  by.ends(true);
  ASSERT_TRUE(by.begins(2 * ms)); // a suspicion is about one poll
  EXPECT_FALSE(by.suspects());
}

TEST(BusyPoll, RestsLongerEachTimeThatItIsPreempted) {
  busy_poll by(50 * us);
  int64_t now = 0;
  auto rest = [&] {
    EXPECT_TRUE(by.begins(now));
    by.goes_on(now + 20 * us);
    by.ends(true);
    by.was_preempted(now);
    int64_t from = now;
    while (!by.begins(now))
      now += ms / 10;
    by.ends(true); // with or without a suspicion, the next poll follows
    return now - from;
  };
  int64_t first = rest(), second = rest();
  EXPECT_EQ(first, busy_poll::rest_least_ns);
  EXPECT_GT(second, first);
  for (int i = 0; i < 20; ++i)
    rest();
  EXPECT_LE(rest(), busy_poll::rest_most_ns);
}

TEST(BusyPoll, ForgetsPreemptionsWhileItIsLeftAlone) {
  busy_poll by(50 * us);
  int64_t now = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(by.begins(now));
    by.ends(true);
    by.was_preempted(now);
    now += busy_poll::rest_most_ns;
  }
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(by.begins(now));
    now = poll(by, now, 2);
  }
  by.was_preempted(now);
  EXPECT_FALSE(by.begins(now + busy_poll::rest_least_ns - 1));
  EXPECT_TRUE(by.begins(now + busy_poll::rest_least_ns));
}

/// Two threads need one processor: each is preempted for the other.
TEST(PreemptionCount, GrowsWhereProcessorsAreShort) {
  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (size_t i = 0; CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &all))
      CPU_SET(i, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> over{false};
  std::thread other([&] { // on the same processor
    while (!over) {
    }
  });
  preemption_count count;
  (void) count.grew();
  while (!count.grew()) {
  }
  over = true;
  other.join();
  ::sched_setaffinity(0, sizeof all, &all);
}

} // namespace
} // namespace terrace::test
