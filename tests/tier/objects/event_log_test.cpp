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
  EXPECT_TRUE(log.read(begin + 26, 100).lost); // a number of another run of the daemon
}

TEST(EventLog, WakesWhoWaitsOnce) {
  event_log log;
  uint64_t begin = log.begin();
  auto context = std::make_shared<request_context>();
  int told = 0;
  log.changes().wait(begin, context, [&] { ++told; });
  EXPECT_EQ(told, 0);
  append(log, 2);
  append(log, 1);
  EXPECT_EQ(told, 1);
  log.changes().wait(begin, context, [&] { ++told; });
  EXPECT_EQ(told, 2);
}

TEST(EventLog, ForgetsWhoWaitsNoLonger) {
  event_log log;
  uint64_t begin = log.begin();
  for (int i = 0; i < 1000; ++i) {
    auto context = std::make_shared<request_context>();
    log.changes().wait(begin, context, [] {});
    context->ended = errc::cancelled;
  }
  EXPECT_LE(log.changes().waiting(), 1u);
}

TEST(EventLog, AJoiningTierMakesEveryoneBeginAnew) {
  event_log log;
  uint64_t begin = log.begin();
  append(log, 2);
  int told = 0;
  log.changes().wait(begin + 2, std::make_shared<request_context>(), [&] { ++told; });
  log.forget();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(log.read(begin + 2, 10).lost);
  EXPECT_FALSE(log.read(log.begin(), 10).lost);
}

space_spec two_ranks() {
  space_spec spec;
  spec.world_size = 2;
  spec.pools = {{.name = "attention"},
                {.name = "latent", .replicated = true},
                {.name = "state", .rule = hit_rule::trailing_chunks}};
  return spec;
}

tier_event event_in(uint32_t space, uint16_t pool) {
  tier_event made{0, event_kind::admit, tier_kind::host, {}};
  made.key.space = space_id{space};
  made.key.pool = pool;
  return made;
}

TEST(EventLog, TellsHowManyObjectsAPrefixNeedsOfAChunk) {
  event_log log;
  uint64_t begin = log.begin();
  log.opened(space_id{1}, two_ranks());
  space_spec states = two_ranks();
  states.pools = {states.pools[2], states.pools[2]};
  log.opened(space_id{2}, states);
  std::vector<tier_event> some{event_in(1, 0), event_in(1, 1), event_in(1, 2), event_in(2, 1)};
  log.append(some);
  auto told = log.read(begin, 10).events;
  ASSERT_EQ(told.size(), 4u);
  EXPECT_EQ(told[0].chunk_objects, 3u); // two ranks, and an object that both share
  EXPECT_EQ(told[1].chunk_objects, 3u);
  EXPECT_EQ(told[2].chunk_objects, 0u); // only the last chunk's object is needed
  EXPECT_EQ(told[3].chunk_objects, 4u); // no pool needs all chunks
}

TEST(EventLog, ASpaceThatIsOpenedAfterItsObjectsWereToldMakesEveryoneBeginAnew) {
  event_log log;
  uint64_t begin = log.begin();
  std::vector<tier_event> snapshot{event_in(1, 0)};
  log.count_chunk_objects(snapshot);
  EXPECT_EQ(snapshot[0].chunk_objects, 0u);
  log.opened(space_id{2}, two_ranks()); // nobody was told of its objects
  EXPECT_FALSE(log.read(begin, 10).lost);
  log.opened(space_id{1}, two_ranks());
  EXPECT_TRUE(log.read(begin, 10).lost);
  begin = log.begin();
  log.count_chunk_objects(snapshot);
  EXPECT_EQ(snapshot[0].chunk_objects, 3u);
  log.opened(space_id{1}, two_ranks()); // another client opens it
  EXPECT_FALSE(log.read(begin, 10).lost);

  log.forgotten(std::vector{space_id{1}});
  snapshot = {event_in(1, 0)};
  log.count_chunk_objects(snapshot);
  EXPECT_EQ(snapshot[0].chunk_objects, 0u);
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
