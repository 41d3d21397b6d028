// The last events of a trust group, for readers of any speed.
#include "tier/objects/event_log.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace terrace {
namespace {

std::vector<tier_event> events(size_t count, event_kind what = event_kind::admit) {
  return std::vector<tier_event>(count, {0, what, tier_kind::host, {}});
}
void append(event_log& log, size_t count) {
  auto some = events(count);
  log.append(some);
}

TEST(EventLog, NumbersEventsWithoutGaps) {
  event_log log;
  uint64_t begin = log.begin();
  EXPECT_NE(begin, 0u);
  append(log, 3);
  append(log, 2);
  auto part = log.read(begin, 4);
  ASSERT_EQ(part.events.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(part.events[i].sequence, begin + 1 + i);
  EXPECT_EQ(part.last, begin + 5);
  EXPECT_EQ(log.read(begin + 4, 10).events.size(), 1u);
  EXPECT_TRUE(log.read(begin + 5, 10).events.empty());
}

TEST(EventLog, TellsWhoIsTooSlowWhatIsKept) {
  event_log log(10);
  uint64_t begin = log.begin();
  append(log, 25);
  auto part = log.read(begin, 100);
  EXPECT_TRUE(part.lost && part.events.empty());
  EXPECT_EQ(part.oldest, begin + 16);
  EXPECT_FALSE(log.read(begin + 15, 100).lost);
  EXPECT_EQ(log.read(begin + 15, 100).events.size(), 10u);
  EXPECT_TRUE(log.read(begin + 26, 100).lost); // of another run of the daemon
}

TEST(EventLog, WakesWhoWaitsOnce) {
  event_log log;
  uint64_t begin = log.begin();
  auto context = std::make_shared<request_context>();
  int told = 0;
  log.wait(begin, context, [&] { ++told; });
  EXPECT_EQ(told, 0);
  append(log, 2);
  append(log, 1);
  EXPECT_EQ(told, 1);
  log.wait(begin, context, [&] { ++told; });
  EXPECT_EQ(told, 2);
}

TEST(EventLog, ForgetsWhoWaitsNoLonger) {
  event_log log;
  uint64_t begin = log.begin();
  for (int i = 0; i < 1000; ++i) {
    auto context = std::make_shared<request_context>();
    log.wait(begin, context, [] {});
    context->ended = errc::cancelled;
  }
  EXPECT_LE(log.waiting(), 1u);
}

TEST(EventLog, AJoiningTierMakesEveryoneBeginAnew) {
  event_log log;
  uint64_t begin = log.begin();
  append(log, 2);
  int told = 0;
  log.wait(begin + 2, std::make_shared<request_context>(), [&] { ++told; });
  log.forget();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(log.read(begin + 2, 10).lost);
  EXPECT_FALSE(log.read(log.begin(), 10).lost);
}

TEST(EventLog, ThreadsReadWhileOthersAppend) {
  event_log log(1000);
  uint64_t at = log.begin();
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i)
      append(log, 5);
  });
  uint64_t end = at + 10'000, losses = 0;
  while (at != end) {
    auto part = log.read(at, 100);
    if (part.lost) {
      at = part.oldest - 1;
      ++losses;
    }
    for (const tier_event& event : part.events)
      ASSERT_EQ(event.sequence, ++at);
  }
  writer.join();
  EXPECT_LE(losses, 10'000u);
}

} // namespace
} // namespace terrace
