// Chains longer than host memory, and bursts of stores that would fill it.
#include "group_fixture.hpp"

#include <cerrno>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using runtime::io_code;

namespace {

struct DiskStreams : group_fixture {
  DiskStreams() { start({.host_objects = 32, .disk_objects = 120, .window_objects = 4}); }
};

} // namespace

TEST_F(DiskStreams, AChainLongerThanHostMemoryIsStoredAndLoadedWhole) {
  auto stored = store(0, 80);
  EXPECT_EQ(stored.failure.code, errc::ok) << stored.failure.text;
  EXPECT_EQ(stored.stored_chunks, 80u);
  EXPECT_EQ(present(disk_tier(), 0, 80), 80u);
  forget_host(0, 80);
  auto loaded = load(0, 80);
  EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
  EXPECT_EQ(loaded.chunks, 80u);
  EXPECT_EQ(loaded.bytes, 80 * payload);
  for (uint64_t n = 0; n < 80; ++n)
    EXPECT_TRUE(delivered(n)) << n;
  EXPECT_EQ(load(0, 80).chunks, 80u) << "partly from host memory";
  EXPECT_LE(host_used(), 32 * physical);
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(DiskStreams, ALongChainStreamsPastWhatOthersUse) {
  store(0, 80);
  forget_host(0, 80);
  store(100, 8);
  EXPECT_EQ(load(0, 80).chunks, 80u);
  EXPECT_EQ(present(group->host, 100, 8), 8u);
  EXPECT_EQ(present(group->host, 0, 16), 16u) << "its first half stays, as far as there is room";
  EXPECT_EQ(present(group->host, 40, 40), 0u);
  EXPECT_EQ(host_used(), (8 + present(group->host, 0, 80)) * physical)
      << "what streamed past gave its room back";
}

TEST_F(DiskStreams, ALeaseOfALongChainLeavesRoomForItsLoads) {
  store(0, 80);
  size_t there = present(group->host, 0, 80);
  EXPECT_GT(there, 16u);
  auto leased = lookup(chain(0, 80), true);
  EXPECT_EQ(leased.plan.found_chunks, 80u);
  EXPECT_EQ(report(disk_tier()).held_objects, 80u);
  EXPECT_EQ(report(group->host).held_objects, 24u) << "all but the quarter that is for loads";
  auto loaded = load(0, 80);
  EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
  EXPECT_EQ(loaded.chunks, 80u);
  EXPECT_TRUE(delivered(79));
}

TEST_F(DiskStreams, ALeaseHoldsAllOfHostMemoryWhereTheDiskHasNothing) {
  ring.fail_next(io_code::write, EIO, 64);
  store(0, 32);
  EXPECT_EQ(present(disk_tier(), 0, 32), 0u);
  auto leased = lookup(chain(0, 32), true);
  EXPECT_EQ(report(group->host).held_objects, 32u);
}

TEST_F(DiskStreams, TwoLoadsOfALongChainBothGetIt) {
  store(0, 80);
  forget_host(0, 80);
  auto first = begin_load(0, 80);
  auto second = begin_load(0, 80);
  settle();
  ASSERT_TRUE(*first && *second);
  EXPECT_EQ((*first)->chunks, 80u);
  EXPECT_EQ((*second)->chunks, 80u);
}

TEST_F(DiskStreams, ABurstOfStoresLeavesHalfOfHostMemoryToLoads) {
  store(0, 12);
  forget_host(0, 12);
  ring.hold(io_code::write);
  std::vector<box<store_result>> burst;
  for (uint64_t first = 20; first < 60; first += 4)
    burst.push_back(begin_store(first, 4));
  settle();
  size_t done = 0;
  for (const auto& one : burst)
    done += *one ? 1 : 0;
  EXPECT_EQ(done, 4u); // half of host memory waits for the disk
  EXPECT_EQ(load(0, 12).chunks, 12u);
  ring.release(io_code::write);
  settle();
  for (const auto& one : burst) {
    ASSERT_TRUE(*one);
    EXPECT_EQ((*one)->stored_chunks, 4u);
  }
  EXPECT_EQ(present(disk_tier(), 20, 40), 40u);
}

TEST_F(DiskStreams, AStoreThatWaitsForTheDiskEndsWithItsRequest) {
  ring.hold(io_code::write);
  for (uint64_t first = 20; first < 36; first += 4)
    store(first, 4);
  auto of = context();
  auto waiting = begin_store(40, 4, of);
  settle();
  EXPECT_FALSE(*waiting);
  of->ended = errc::deadline;
  caf::anon_send(group->disk()->write_through, sweep_notice{});
  settle();
  ASSERT_TRUE(*waiting);
  EXPECT_EQ((*waiting)->failure.code, errc::deadline);
  EXPECT_NE((*waiting)->failure.text.find("waited for the disk"), std::string::npos);
}
