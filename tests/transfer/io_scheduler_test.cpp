#include "transfer/io_scheduler.hpp"

#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <vector>

namespace terrace {
namespace io_scheduler_test {

constexpr uint64_t kib = 1024;
constexpr uint64_t mib = 1024 * kib;
using enum io_class;

/// A device under `io_scheduler`: lines of operations, and what is in flight in the order of its start.
struct device {
  explicit device(const io_limits& limits) : shares(limits) {}

  void wait(io_class what, uint64_t bytes, size_t count = 1) {
    lines[static_cast<size_t>(what)].insert(lines[static_cast<size_t>(what)].end(), count, bytes);
  }
  std::optional<io_scheduler::grant> next() {
    std::array<uint64_t, io_classes> heads{};
    for (size_t i = 0; i < io_classes; ++i)
      heads[i] = lines[i].empty() ? 0 : lines[i].front();
    auto grant = shares.next(heads);
    if (!grant)
      return grant;
    auto& line = lines[static_cast<size_t>(grant->priority)];
    line.front() -= grant->bytes;
    if (line.front() == 0)
      line.pop_front();
    running.push_back(*grant);
    return grant;
  }
  size_t fill() {
    size_t started = 0;
    while (next())
      ++started;
    return started;
  }
  void finish(size_t which = 0) {
    auto done = running[which];
    running.erase(running.begin() + static_cast<ptrdiff_t>(which));
    moved[static_cast<size_t>(done.priority)] += done.bytes;
    shares.finished(done.priority, done.bytes);
  }
  uint64_t moved_by(io_class what) const { return moved[static_cast<size_t>(what)]; }
  size_t running_of(io_class what) const {
    size_t count = 0;
    for (const auto& one : running)
      count += one.priority == what ? 1 : 0;
    return count;
  }

  io_scheduler shares;
  std::array<std::deque<uint64_t>, io_classes> lines;
  std::array<uint64_t, io_classes> moved{};
  std::deque<io_scheduler::grant> running;
};

TEST(IoShares, KeepsToItsDepth) {
  device disk({.depth = 4});
  disk.wait(load, mib, 10);
  EXPECT_EQ(disk.fill(), 4u);
  disk.finish();
  EXPECT_EQ(disk.fill(), 1u);
}

TEST(IoShares, KeepsToItsBytes) {
  device disk({.bytes_in_flight = 10 * mib});
  disk.wait(load, 4 * mib, 4);
  EXPECT_EQ(disk.fill(), 2u);
  disk.finish();
  EXPECT_EQ(disk.fill(), 1u);
  EXPECT_EQ(disk.shares.bytes_in_flight(), 8 * mib);
}

TEST(IoShares, AnOperationLargerThanAllBytesGoesAlone) {
  device disk({.bytes_in_flight = 2 * mib});
  disk.wait(load, 6 * mib);
  disk.wait(load, mib);
  EXPECT_EQ(disk.fill(), 1u);
  disk.finish();
  EXPECT_EQ(disk.fill(), 1u);
}

TEST(IoShares, LongOperationsAreCut) {
  device disk({.piece_bytes = 4 * mib});
  disk.wait(load, 6 * mib);
  EXPECT_EQ(disk.next()->bytes, 4 * mib);
  EXPECT_EQ(disk.next()->bytes, 2 * mib);
}

TEST(IoShares, ASmallRestGoesWithTheLastPiece) {
  device disk({.piece_bytes = 8 * mib});
  disk.wait(load, 16 * mib + 4 * kib); // an object and its header block
  EXPECT_EQ(disk.next()->bytes, 8 * mib);
  EXPECT_EQ(disk.next()->bytes, 8 * mib + 4 * kib);
  disk.wait(load, 9 * mib + 4 * kib);
  EXPECT_EQ(disk.next()->bytes, 8 * mib);
  EXPECT_EQ(disk.next()->bytes, mib + 4 * kib);
}

TEST(IoShares, TheMoreUrgentClassGoesFirst) {
  device disk({.depth = 8});
  for (auto what : {scrub, write, prefetch, load})
    disk.wait(what, 4 * kib);
  std::vector<io_class> order;
  while (auto grant = disk.next())
    order.push_back(grant->priority);
  EXPECT_EQ(order, (std::vector{load, prefetch, write, scrub}));
}

TEST(IoShares, BesideLoadsWritesKeepASmallShareInSmallPieces) {
  device disk({.depth = 32});
  disk.wait(load, 4 * mib, 10);
  disk.wait(write, 8 * mib, 20);
  disk.fill();
  EXPECT_EQ(disk.running_of(load), 10u);
  uint64_t bytes = disk.shares.bytes_in_flight(write);
  EXPECT_LE(bytes, 8 * mib); // a fifth of the loads' 40 MiB
  EXPECT_GE(bytes, 7 * mib);
  for (const auto& one : disk.running)
    if (one.priority == write) {
      EXPECT_EQ(one.bytes, mib);
    }
}

TEST(IoShares, OneSmallWriteIsAlwaysAllowed) {
  device disk({.depth = 4});
  disk.wait(load, mib, 100);
  disk.wait(write, 8 * mib, 100);
  disk.fill();
  EXPECT_EQ(disk.running_of(write), 1u);
  EXPECT_EQ(disk.running_of(load), 3u);
}

TEST(IoShares, ABurstOfLoadsDoesNotStarveAWriteThatComesLater) {
  device disk({.depth = 4});
  disk.wait(load, mib, 100);
  disk.fill();
  disk.wait(write, mib);
  disk.finish();
  EXPECT_EQ(disk.next()->priority, write); // the next free place
}

TEST(IoShares, AWriteThatWaitsForBytesIsNotOvertakenByLoads) {
  device disk({.depth = 32, .bytes_in_flight = 4 * mib});
  disk.wait(load, mib, 100);
  disk.fill();
  disk.wait(write, mib);
  disk.finish();
  EXPECT_EQ(disk.next()->priority, write);
}

TEST(IoShares, WithOnePlaceEveryClassHasItsTurn) {
  device disk({.depth = 1});
  for (auto what : {load, prefetch, write, scrub})
    disk.wait(what, mib, 1000);
  for (int i = 0; i < 100; ++i) {
    disk.fill();
    disk.finish();
  }
  EXPECT_GE(disk.moved_by(load), 60 * mib);
  for (auto what : {prefetch, write, scrub})
    EXPECT_GE(disk.moved_by(what), 10 * mib) << to_string(what);
}

TEST(IoShares, ALoneClassOfWritesFindsItsWayToItsLimit) {
  device disk({.depth = 64, .alone_bytes = 16 * mib});
  disk.wait(write, mib, 1000);
  std::vector<uint64_t> in_flight;
  for (int round = 0; round < 6; ++round) {
    disk.fill();
    in_flight.push_back(disk.shares.bytes_in_flight() / mib);
    for (size_t running = disk.running.size(); running != 0; --running)
      disk.finish();
  }
  EXPECT_EQ(in_flight, (std::vector<uint64_t>{1, 2, 4, 8, 16, 16}));
}

TEST(IoShares, OneLoadTakesBackWhatWritesHadGrown) {
  device disk({.depth = 64, .alone_bytes = 16 * mib});
  disk.wait(write, mib, 1000);
  for (int i = 0; i < 200; ++i) {
    disk.fill();
    disk.finish();
  }
  ASSERT_EQ(disk.shares.bytes_in_flight(write), 15 * mib);
  disk.wait(load, mib);
  EXPECT_EQ(disk.next()->priority, load);
  // Until what the device has been given is done, no other write follows; then small ones again.
  while (disk.shares.bytes_in_flight(write) > mib) {
    EXPECT_FALSE(disk.next());
    disk.finish();
  }
  while (!disk.running.empty())
    disk.finish();
  EXPECT_EQ(disk.fill(), 1u); // the load is over: the window begins to grow again
  disk.finish();
  EXPECT_EQ(disk.fill(), 2u);
}

TEST(IoShares, AReaderThatComesAgainAndAgainMeetsFewWrites) {
  device disk({.depth = 64});
  disk.wait(write, 8 * mib, 10000);
  for (int round = 0; round < 1000; ++round) {
    disk.wait(load, 256 * kib);
    disk.fill();
    EXPECT_LE(disk.shares.bytes_in_flight(write), 2 * mib);
    // The device serves in the order of arrival; the reader comes again as soon as it has its bytes.
    while (disk.running_of(load) != 0)
      disk.finish();
  }
  EXPECT_GE(disk.moved_by(write), 100 * mib) << "and the writes get on";
}

TEST(IoShares, LoadsHaveNoWindowToGrow) {
  device disk({.depth = 64});
  disk.wait(load, 4 * mib, 64);
  EXPECT_EQ(disk.fill(), 64u);
}

TEST(IoShares, PrefetchesGiveWayToLoadsAndWritesToPrefetches) {
  device disk({.depth = 64});
  disk.wait(load, mib, 20);
  disk.wait(prefetch, mib, 20);
  disk.wait(write, mib, 20);
  disk.fill();
  EXPECT_EQ(disk.running_of(load), 20u);
  EXPECT_EQ(disk.running_of(prefetch), 10u); // half of the loads
  EXPECT_EQ(disk.running_of(write), 6u);     // a fifth of both
}

TEST(IoShares, NothingWaitsIsNoGrant) {
  device disk({});
  EXPECT_FALSE(disk.next());
}

TEST(IoShares, EveryClassHasAName) {
  EXPECT_EQ(to_string(load), "load");
  EXPECT_EQ(to_string(prefetch), "prefetch");
  EXPECT_EQ(to_string(write), "write");
  EXPECT_EQ(to_string(scrub), "scrub");
}

TEST(IoShares, WhateverComesTheLimitsHoldAndEverythingGetsDone) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    io_limits limits;
    limits.depth = 1 + static_cast<uint32_t>(random() % 16);
    limits.bytes_in_flight = (1 + random() % 32) * mib;
    limits.piece_bytes = (1 + random() % 8) * mib;
    limits.alone_bytes = (1 + random() % 16) * mib;
    device disk(limits);
    std::array<uint64_t, io_classes> asked{};
    for (int step = 0; step < 500; ++step) {
      if (random() % 2 == 0) {
        size_t what = random() % io_classes;
        uint64_t bytes = (1 + random() % 4096) * 4 * kib;
        disk.wait(static_cast<io_class>(what), bytes);
        asked[what] += bytes;
      } else if (!disk.running.empty()) {
        disk.finish(random() % disk.running.size());
      }
      disk.fill();
      ASSERT_LE(disk.shares.in_flight(), limits.depth);
      ASSERT_TRUE(disk.shares.in_flight() <= 1 || disk.shares.bytes_in_flight() <= limits.bytes_in_flight);
      ASSERT_EQ(disk.shares.in_flight(), disk.running.size());
    }
    while (!disk.running.empty()) { // an idle device with something waiting would end this with bytes missing
      disk.finish(random() % disk.running.size());
      disk.fill();
    }
    EXPECT_EQ(disk.moved, asked);
  }
}

} // namespace io_scheduler_test
} // namespace terrace
