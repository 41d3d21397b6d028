// Prefetches to a tier faster than host memory.
#include "actors/transfer/transfer_actors.hpp"
#include "fast_tier_fixture.hpp"
#include "tests/support/counters.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using runtime::io_code;

namespace {

struct BringAbove : fast_tier_fixture {
  BringAbove() {
    fast_tier_fixture::begin(demotion_mode::write_back, {.host_objects = 8, .disk_objects = 64});
  }

  struct begun {
    caf::actor by;
    context_ptr of;
    box<prefetch_result> answer;
  };
  begun begin(uint64_t first, size_t count) {
    prefetch_job job;
    job.group = group;
    job.space = in;
    job.to = tier_kind::gpu;
    auto objects = chain(first, count, payload);
    auto digests = std::make_shared<std::vector<digest>>();
    for (const object_key& key : objects->keys)
      digests->push_back(key.chunk);
    job.chunks = digests;
    if (first != 0)
      job.before = chain(first - 1, 1)->keys[0].chunk;
    job.waits = true;
    job.context = std::make_shared<request_context>();
    job.context->ahead = true;
    auto found = std::make_shared<const prefix_plan>(lookup(objects).plan);
    job.found = found;
    job.expected = found;
    begun made{spawn_prefetch(sys), job.context, nullptr};
    made.answer = ask<prefetch_result>(made.by, std::move(job));
    settle();
    return made;
  }
  void end(const begun& what, errc why) {
    what.of->ended = why;
    caf::anon_send(what.by, stop_prefetch_notice{});
    for (const tier_actor& tier : {group->host, disk_tier(), gpu()})
      caf::anon_send(tier, sweep_notice{});
    caf::anon_send(parts().write_through, sweep_notice{});
    settle();
  }
  void expect_nothing_held() {
    for (const tier_actor& tier : {group->host, disk_tier(), gpu()}) {
      EXPECT_EQ(report(tier).held_objects, 0u);
      EXPECT_EQ(report(tier).waiting, 0u);
      EXPECT_EQ(report(tier).usage.used_bytes % physical, 0u);
    }
    EXPECT_EQ(host_used(), report(group->host).objects * physical) << "reserved space has been given back";
  }
};

} // namespace

TEST_F(BringAbove, WhatIsInHostMemoryOrOnDiskComesIntoTheTier) {
  store(0, 4);
  settle();
  forget_host(2, 2);
  auto one = begin(0, 4);
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->failure.code, errc::ok);
  EXPECT_EQ((*one.answer)->end, prefetch_end::complete);
  EXPECT_EQ((*one.answer)->all.delivered, 4u);
  EXPECT_EQ((*one.answer)->by_tier[static_cast<size_t>(tier_kind::disk)].delivered, 2u);
  EXPECT_EQ((*one.answer)->by_tier[static_cast<size_t>(tier_kind::host)].delivered, 2u);
  EXPECT_EQ(present(gpu(), 0, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 4u) << "the copies below stay";
  expect_nothing_held();
  forget_host(0, 4);
  forget(disk_tier(), 0, 4);
  EXPECT_EQ(load(0, 4).chunks, 4u);
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(BringAbove, WhatIsThereIsNotCopiedAgain) {
  only_there(0, 3);
  auto reads = ring.started(io_code::read);
  auto one = begin(0, 3);
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->all.delivered, 3u);
  EXPECT_EQ((*one.answer)->by_tier[static_cast<size_t>(tier_kind::gpu)].delivered, 3u);
  EXPECT_EQ(present(group->host, 0, 3), 0u) << "it does not come to host memory either";
  EXPECT_EQ(ring.started(io_code::read), reads);
  expect_nothing_held();
}

TEST_F(BringAbove, OthersMakeRoomAndComeBackToHostMemory) {
  only_there(0, 4);
  forget(disk_tier(), 0, 4);
  store(100, 4);
  auto one = begin(100, 4);
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->all.delivered, 4u);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  expect_nothing_held();
}

TEST_F(BringAbove, EndsWhereTheTierHasNoRoom) {
  only_there(0, 2);
  auto held = hold(gpu(), 0, 2);
  store(100, 4);
  auto one = begin(100, 4);
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->end, prefetch_end::no_room);
  EXPECT_EQ((*one.answer)->all.delivered, present(gpu(), 100, 4));
  EXPECT_EQ(present(gpu(), 0, 2), 2u);
  held.reset();
  settle();
  expect_nothing_held();
}

TEST_F(BringAbove, MayBeStoppedWhileTheDiskIsRead) {
  on_disk(0, 4);
  ring.hold(io_code::read);
  auto one = begin(0, 4);
  EXPECT_FALSE(*one.answer);
  end(one, errc::cancelled);
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->end, prefetch_end::cancelled);
  EXPECT_EQ((*one.answer)->all.delivered, 0u);
  ring.release(io_code::read);
  settle();
  expect_nothing_held();
}

TEST_F(BringAbove, WhatCannotBeReadEndsIt) {
  on_disk(0, 4);
  ring.fail_next(io_code::read, EIO);
  auto one = begin(0, 4);
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->end, prefetch_end::lost);
  EXPECT_TRUE((*one.answer)->missing);
  EXPECT_LT((*one.answer)->all.delivered, 4u);
  expect_nothing_held();
}

TEST_F(BringAbove, ATierThatIsLostMeanwhileDeliversNothing) {
  store(0, 4);
  serves->stops("its process has ended");
  auto one = begin(0, 4);
  ASSERT_TRUE(*one.answer);
  EXPECT_EQ((*one.answer)->end, prefetch_end::lost);
  EXPECT_EQ((*one.answer)->all.delivered, 0u);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  expect_nothing_held();
}
