// What is written to disk, and what is not worth it.
#include "group_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using runtime::io_code;

namespace {

struct DiskAdmission : group_fixture {
  static constexpr uint64_t disk_objects = 85;
  void begin(const admission_rules& admission) {
    start({.host_objects = 32, .disk_objects = disk_objects, .admission = admission});
  }
  /// Requests, each for eight chunks: every other one for chunks below 80, which come back, and for others that do not.
  void learn() {
    for (uint64_t i = 1; i <= 400; ++i) {
      uint64_t first = i % 2 == 0 ? i / 2 % 10 * 8 : 10'000 + 8 * i;
      group->uses->offer(8 + 1);
      caf::anon_send(group->policy, inference_begin{i, chain(first, 8), {}, {}});
      caf::anon_send(group->policy, inference_end{i, {}, {}});
    }
    settle();
  }
  uint64_t on_disk(uint64_t first, size_t count) { return present(disk_tier(), first, count); }
};

} // namespace

TEST_F(DiskAdmission, WhatIsOnDiskIsNotWrittenAgain) {
  begin({});
  store(0, 4);
  forget_host(0, 4);
  uint64_t writes = ring.started(io_code::write);
  EXPECT_EQ(store(0, 4).stored_chunks, 4u);
  EXPECT_EQ(ring.started(io_code::write), writes);
}

TEST_F(DiskAdmission, APromotedObjectKeepsItsCopyOnDisk) {
  begin({});
  store(0, 4);
  forget_host(0, 4);
  EXPECT_EQ(load(0, 4).chunks, 4u);
  EXPECT_EQ(on_disk(0, 4), 4u);
  uint64_t writes = ring.started(io_code::write);
  forget_host(0, 4);
  EXPECT_EQ(load(0, 4).chunks, 4u);
  EXPECT_EQ(ring.started(io_code::write), writes);
}

TEST_F(DiskAdmission, SeenTwiceWritesOnTheSecondUse) {
  begin({.rule = admission_rule::seen_twice});
  store(0, 4);
  EXPECT_EQ(on_disk(0, 4), 0u);
  EXPECT_EQ(load(0, 4).chunks, 4u); // out of host memory: a second use
  EXPECT_EQ(on_disk(0, 4), 4u);
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(DiskAdmission, WhatItsRuleRejectsIsRememberedUntilItIsAdmitted) {
  begin({.rule = admission_rule::seen_twice});
  store(0, 4);
  ASSERT_TRUE(why_gone(0));
  EXPECT_EQ(why_gone(0)->from, tier_kind::disk);
  EXPECT_EQ(why_gone(0)->refused, refusal_reason::admission);
  EXPECT_EQ(store(100, 32).stored_chunks, 32u); // they are evicted
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(why_gone(3)->why, miss_reason::not_admitted);
  store(0, 4);
  EXPECT_EQ(on_disk(0, 4), 4u);
  forget_host(0, 4);
  forget(disk_tier(), 0, 4);
  EXPECT_NE(why_gone(0)->why, miss_reason::not_admitted);
}

TEST_F(DiskAdmission, SeenTwiceWritesWhatCameBackAfterItWasLost) {
  begin({.rule = admission_rule::seen_twice});
  store(0, 4);
  forget_host(0, 4);
  store(0, 4);
  EXPECT_EQ(on_disk(0, 4), 4u);
}

TEST_F(DiskAdmission, WhatIsWrittenOnceIsNotOfferedAgain) {
  begin({.rule = admission_rule::seen_twice});
  store(0, 4);
  load(0, 4);
  uint64_t writes = ring.started(io_code::write);
  load(0, 4);
  EXPECT_EQ(ring.started(io_code::write), writes);
}

TEST_F(DiskAdmission, ABudgetOfBytesEndsWritingAndKeepsPrefixesWhole) {
  begin({.budget = {.bytes_per_day = 24 * 2 * physical}}); // two objects at once
  EXPECT_EQ(store(0, 4).stored_chunks, 4u);
  EXPECT_EQ(on_disk(0, 2), 2u);
  EXPECT_EQ(on_disk(2, 2), 0u);
  EXPECT_FALSE(why_gone(1));
  ASSERT_TRUE(why_gone(2));
  EXPECT_EQ(why_gone(2)->refused, refusal_reason::endurance);
  EXPECT_EQ(store(10, 1).stored_chunks, 1u);
  EXPECT_EQ(on_disk(10, 1), 0u);
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(DiskAdmission, WhatIsOnDiskCostsNothingOfTheBudget) {
  begin({.budget = {.bytes_per_day = 24 * 4 * physical}});
  store(0, 2);
  for (int i = 0; i < 5; ++i) {
    forget_host(0, 2);
    store(0, 2);
  }
  store(10, 2);
  EXPECT_EQ(on_disk(10, 2), 2u);
}

TEST_F(DiskAdmission, BeatsVictimWritesWhileThereIsRoom) {
  begin({.rule = admission_rule::beats_victim});
  store(0, 4);
  EXPECT_EQ(on_disk(0, 4), 4u);
  EXPECT_EQ(report(group->host).held_objects, 0u);
  uint64_t asked = report(disk_tier()).hits;
  EXPECT_EQ(load(0, 4).chunks, 4u);
  EXPECT_EQ(report(disk_tier()).hits, asked) << "a disk that has taken everything is not offered it again";
}

TEST_F(DiskAdmission, BeatsVictimSparesAFullDiskWhatIsWorthLess) {
  start({.host_objects = 32,
         .disk_objects = disk_objects,
         .policy = "kmg",
         .admission = {.rule = admission_rule::beats_victim},
         .clock = clock_source::told}); // nobody tells: it stands still
  learn();
  for (uint64_t first = 0; first < 64; first += 8)
    EXPECT_EQ(store(first, 8).stored_chunks, 8u);
  store(600, 4); // while there is room, whatever it is worth
  EXPECT_EQ(on_disk(600, 4), 4u);
  forget(disk_tier(), 600, 4);
  store(64, 8);
  ASSERT_LT(report(disk_tier()).room_bytes, physical);
  forget(disk_tier(), 66, 2);
  learn();
  EXPECT_EQ(store(300, 4).stored_chunks, 4u);
  EXPECT_EQ(on_disk(300, 2), 2u) << "there was room for two";
  EXPECT_EQ(on_disk(302, 2), 0u);
  for (uint64_t i = 1'001; i < 1'006; ++i) {
    group->uses->offer(4);
    caf::anon_send(group->policy, inference_begin{i, chain(300, 4), {}, {}});
  }
  settle();
  EXPECT_EQ(load(300, 4).chunks, 4u); // it is worth as much as the others now
  EXPECT_EQ(on_disk(302, 2), 2u);
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(DiskAdmission, WhatIsFreeOnAPathThatIsOutIsNoRoom) {
  start({.host_objects = 32,
         .disk_objects = disk_objects,
         .disk_paths = 2,
         .policy = "kmg",
         .admission = {.rule = admission_rule::beats_victim},
         .clock = clock_source::told});
  learn();
  int lost = paths->file(1)->fd();
  store(72, 8); // of those that come back, or what is left of it would be the first to go
  forget_host(72, 8);
  ring.respond([lost](const runtime::io_request& request) {
    return request.fd == lost && request.code == io_code::read ? std::optional<int32_t>(-ENODEV)
                                                               : std::nullopt;
  });
  load(72, 8);
  ASSERT_FALSE(service->reads(1));
  forget(disk_tier(), 72, 8);
  forget_host(72, 8);
  for (uint64_t first = 0; first < 80; first += 8)
    EXPECT_EQ(store(first, 8).stored_chunks, 8u);
  auto full = report(disk_tier());
  ASSERT_LT(full.room_bytes, physical);
  ASSERT_GT(full.usage.free_bytes, 40 * physical);
  learn();
  EXPECT_EQ(store(300, 4).stored_chunks, 4u);
  EXPECT_EQ(on_disk(300, 4), 0u);
}
