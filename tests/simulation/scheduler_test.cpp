#include "scheduler.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace terrace::simulation {
namespace {

using std::chrono::nanoseconds;

TEST(SimulationScheduler, JumpsToTheNextEvent) {
  scheduler events(1);
  std::string order;
  events.after(std::chrono::hours{5}, [&] { order += 'b'; });
  events.after(nanoseconds{3}, [&] { order += 'a'; });
  EXPECT_TRUE(events.step());
  EXPECT_EQ(events.now(), nanoseconds{3});
  EXPECT_TRUE(events.step());
  EXPECT_EQ(events.now(), std::chrono::hours{5});
  EXPECT_FALSE(events.step());
  EXPECT_EQ(order, "ab");
}

TEST(SimulationScheduler, AnEventMayAddAnother) {
  scheduler events(1);
  bool ran = false;
  events.after(nanoseconds{1}, [&] { events.after(nanoseconds{2}, [&] { ran = true; }); });
  while (events.step()) {
  }
  EXPECT_TRUE(ran);
  EXPECT_EQ(events.now(), nanoseconds{3});
  EXPECT_EQ(events.steps(), 2U);
}

std::string order_of(uint64_t seed) {
  scheduler events(seed);
  std::string order;
  for (char c : std::string("abc"))
    events.after(nanoseconds{1}, [&order, c] { order += c; });
  while (events.step()) {
  }
  return order;
}

TEST(SimulationScheduler, OrdersEventsOfOneTimeByTheSeed) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_EQ(order_of(seed), order_of(seed));
    seen.insert(order_of(seed));
  }
  EXPECT_EQ(seen.size(), 6U) << "every order happens";
}

TEST(SimulationScheduler, ACancelledEventDoesNotRun) {
  scheduler events(1);
  auto which = events.after(nanoseconds{1}, [] { FAIL(); });
  events.cancel(which);
  events.cancel(which);
  EXPECT_FALSE(events.step());
}

TEST(SimulationScheduler, ItsHashDependsOnEveryNoteAndItsTime) {
  auto hash = [](uint64_t word, int64_t at) {
    scheduler events(1);
    events.after(nanoseconds{at}, [&] { events.note({word}); });
    events.step();
    return events.trace_hash();
  };
  EXPECT_EQ(hash(1, 1), hash(1, 1));
  EXPECT_NE(hash(1, 1), hash(2, 1));
  EXPECT_NE(hash(1, 1), hash(1, 2));
}

} // namespace
} // namespace terrace::simulation
