// Prefetches of a group over a simulated ring: who reads, who waits, and what a stop leaves behind.
#include "actors/transfer/transfer_actors.hpp"
#include "disk_fixture.hpp"
#include "tests/support/counters.hpp"

#include <cerrno>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using runtime::io_code;

namespace {

struct Prefetches : disk_fixture {
  Prefetches() { start({.host_objects = 16, .disk_objects = 85, .window_objects = 8}); }

  std::shared_ptr<const arrival_counters> arrivals; ///< of those that begin

  struct begun {
    caf::actor by;
    context_ptr of;
    box<prefetch_result> answer;
  };
  /// All chunks are looked up first; those that are found are expected.
  begun begin(uint64_t first, size_t count, bool waits = true) {
    prefetch_job job;
    job.group = group;
    job.space = in;
    auto objects = chain(first, count, payload);
    auto digests = std::make_shared<std::vector<digest>>();
    for (const object_key& key : objects->keys)
      digests->push_back(key.chunk);
    job.chunks = digests;
    if (first != 0)
      job.before = chain(first - 1, 1)->keys[0].chunk;
    job.waits = waits;
    job.arrivals = arrivals;
    job.context = std::make_shared<request_context>();
    job.context->ahead = true;
    auto found = std::make_shared<const prefix_plan>(lookup(objects).plan);
    job.found = found;
    job.expected = found;
    begun made{spawn_prefetch(sys), job.context, nullptr};
    made.answer = ask<prefetch_result>(made.by, std::move(job));
    return made;
  }
  void end(const begun& what, errc why) {
    what.of->ended = why;
    caf::anon_send(what.by, stop_prefetch_notice{});
    caf::anon_send(group->host, sweep_notice{});
    caf::anon_send(disk_tier(), sweep_notice{});
  }
  void expect_nothing_held() {
    EXPECT_EQ(report(group->host).held_objects, 0u);
    EXPECT_EQ(report(disk_tier()).held_objects, 0u);
    EXPECT_EQ(report(group->host).waiting, 0u);
    EXPECT_EQ(host_used(), present(group->host, 0, 16) * physical) << "reserved space has been given back";
  }
};

} // namespace

TEST_F(Prefetches, BringWhatIsOnDiskAndALoadReadsNothing) {
  on_disk(0, 8);
  auto one = begin(0, 8);
  settle();
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->all.delivered, 8u);
  EXPECT_EQ(present(group->host, 0, 8), 8u);
  expect_nothing_held();
  auto reads = ring.started(io_code::read);
  EXPECT_EQ(load(0, 8).chunks, 8u);
  EXPECT_EQ(ring.started(io_code::read), reads);
  for (uint64_t n = 0; n < 8; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(Prefetches, ManyWindowsAreReadAtATime) {
  on_disk(0, 8);
  ring.hold(io_code::read);
  auto one = begin(0, 8);
  settle();
  EXPECT_EQ(ring.in_flight(io_code::read), 8u);
  EXPECT_FALSE(*one.answer);
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->all.delivered, 8u);
}

TEST_F(Prefetches, CountWhatHasArrivedForTheirClient) {
  terrace::test::client_counters client;
  arrivals = client.first(1);
  on_disk(0, 8);
  store(0, 2);
  ring.hold(io_code::read);
  auto one = begin(0, 8);
  settle();
  EXPECT_EQ(client.values(1).front(), present(group->host, 0, 8));
  EXPECT_FALSE(*one.answer);
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ(client.values(1).front(), 8u);
}

TEST_F(Prefetches, CountNothingMoreOnceTheyAreAnswered) {
  terrace::test::client_counters client;
  arrivals = client.first(1);
  on_disk(0, 8);
  ring.hold(io_code::read);
  auto one = begin(0, 8);
  settle();
  end(one, errc::cancelled);
  settle();
  ASSERT_TRUE(*one.answer);
  ring.release(io_code::read);
  settle();
  EXPECT_EQ(client.values(1).front(), 0u);
  EXPECT_EQ(present(group->host, 0, 8), 8u) << "what was being read stays";
}

TEST_F(Prefetches, OneReadServesALoadThatComesMeanwhileAndGoesOnWhenThePrefetchIsCancelled) {
  on_disk(0, 4);
  ring.hold(io_code::read);
  auto one = begin(0, 4);
  settle();
  auto reads = ring.started(io_code::read);
  auto loaded = begin_load(0, 4);
  settle();
  end(one, errc::cancelled);
  settle();
  ASSERT_TRUE(*one.answer) << "at once, although its reads are in flight";
  EXPECT_EQ((*one.answer)->all.delivered, 0u);
  EXPECT_EQ((*one.answer)->end, prefetch_end::cancelled);
  EXPECT_FALSE(*loaded);
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->chunks, 4u);
  EXPECT_EQ(ring.started(io_code::read), reads) << "the load has read nothing";
  expect_nothing_held();
}

TEST_F(Prefetches, TwoOfTheSameChunksShareTheirReads) {
  on_disk(0, 8);
  auto before = ring.started(io_code::read);
  ring.hold(io_code::read);
  auto one = begin(0, 8), other = begin(0, 8);
  settle();
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*one.answer && *other.answer);
  EXPECT_EQ((*one.answer)->all.delivered, 8u);
  EXPECT_EQ((*other.answer)->all.delivered, 8u);
  EXPECT_EQ(ring.started(io_code::read), before + 8);
  expect_nothing_held();
}

TEST_F(Prefetches, AReadErrorKeepsWhatCameBehindIt) {
  on_disk(0, 6);
  ring.fail_next(io_code::read, EIO);
  auto one = begin(0, 6);
  settle();
  ASSERT_TRUE(*one.answer);
  EXPECT_LT((*one.answer)->all.delivered, 6u);
  EXPECT_EQ((*one.answer)->end, prefetch_end::lost);
  EXPECT_TRUE((*one.answer)->damaged);
  EXPECT_EQ(present(group->host, 0, 6), 5u);
  expect_nothing_held();
}

TEST_F(Prefetches, WhatIsClearedMeanwhileDoesNotComeBack) {
  on_disk(0, 4);
  ring.hold(io_code::read);
  auto one = begin(0, 4);
  settle();
  auto disk = ask<clear_answer>(disk_tier(), clear_request{});
  auto host = ask<clear_answer>(group->host, clear_request{});
  settle();
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->all.delivered, 0u);
  EXPECT_EQ((*one.answer)->end, prefetch_end::lost);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  expect_nothing_held();
}

TEST_F(Prefetches, EndWhereThereIsNoRoomUnlessTheyWait) {
  on_disk(0, 4);
  ASSERT_EQ(store(100, 16).stored_chunks, 16u);
  auto held = hold(group->host, 100, 16);
  auto one = begin(0, 4, false);
  settle();
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->end, prefetch_end::no_room);
  EXPECT_EQ((*one.answer)->all.delivered, 0u);
  auto two = begin(0, 4);
  settle();
  EXPECT_FALSE(*two.answer);
  held.reset();
  settle();
  ASSERT_TRUE(*two.answer);
  EXPECT_EQ((*two.answer)->all.delivered, 4u);
}

TEST_F(Prefetches, AStoreGoesFirstAndWhatWaitsAheadOfDemandIsRefusedIfNothingCanLeave) {
  on_disk(0, 4);
  ASSERT_EQ(store(100, 16).stored_chunks, 16u);
  auto held = hold(group->host, 100, 16);
  auto one = begin(0, 4);
  settle();
  EXPECT_FALSE(*one.answer);
  auto stored = begin_store(200, 1);
  settle();
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->end, prefetch_end::no_room);
  EXPECT_FALSE(*stored);
  held.reset();
  settle();
  EXPECT_TRUE(*stored);
}

/// Ends the same prefetch after every message in turn.
TEST_F(Prefetches, MayBeCancelledAtEachMessage) {
  on_disk(0, 6);
  bool complete = false;
  size_t steps = 0;
  for (; !complete && steps < 10'000; ++steps) {
    auto one = begin(0, 6);
    run_some(steps);
    complete = one.answer->has_value();
    end(one, errc::cancelled);
    settle();
    ASSERT_TRUE(*one.answer) << steps;
    EXPECT_EQ((*one.answer)->failure.code, errc::ok);
    auto told = (*one.answer)->all.delivered;
    EXPECT_EQ((*one.answer)->end, told == 6 ? prefetch_end::complete : prefetch_end::cancelled) << steps;
    EXPECT_EQ(present(group->host, 0, told), told) << steps;
    expect_nothing_held();
    ASSERT_FALSE(HasFailure()) << steps;
    if (steps % 8 == 0) {
      EXPECT_EQ(load(0, 6).chunks, 6u);
    }
    if (present(group->host, 0, 6) != 0)
      forget_host(0, 6);
  }
  EXPECT_TRUE(complete);
  EXPECT_GT(steps, 50u);
}
