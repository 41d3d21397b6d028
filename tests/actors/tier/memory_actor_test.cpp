// Host memory that changes its size under a trust group.
#include "actors/tier/memory_actor.hpp"

#include "group_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

/// Four segments of four objects, and the actor that changes them.
struct ChangingMemory : group_fixture {
  std::vector<std::string> logged, warned;
  memory_actor memory;

  void begin(uint64_t disk_objects = 0, demotion_mode demotion = demotion_mode::write_through) {
    start({.host_objects = 16,
           .disk_objects = disk_objects,
           .window_objects = 2,
           .demotion = demotion,
           .segment_objects = 4});
    memory = spawn_memory(sys, {.parts = group,
                                .log = [this](const std::string& line) { logged.push_back(line); },
                                .warn = [this](const std::string& line) { warned.push_back(line); }});
    settle();
  }
  void resize(uint64_t bytes) {
    caf::anon_send(memory, resize_memory{bytes});
    settle();
  }
  uint64_t capacity() { return report(group->host).usage.capacity_bytes; }
};

} // namespace

TEST_F(ChangingMemory, GrowsByNewSegmentsAndKeepsWhatItHas) {
  begin();
  store(0, 16);
  resize(24 * physical);
  EXPECT_EQ(capacity(), 24 * physical);
  EXPECT_EQ(group->memory->segments(), 6u);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  EXPECT_EQ(present(group->host, 0, 16), 16u);
  EXPECT_EQ(present(group->host, 100, 8), 8u);
  EXPECT_EQ(load(100, 8).chunks, 8u);
  EXPECT_TRUE(delivered(107));
}

TEST_F(ChangingMemory, ShrinksByWholeSegmentsFromTheEnd) {
  begin();
  store(0, 16);
  resize(8 * physical);
  EXPECT_EQ(capacity(), 8 * physical);
  EXPECT_EQ(present(group->host, 0, 16), 8u);
  EXPECT_EQ(group->memory->leaving_bytes(), 0u);
  EXPECT_EQ(group->memory->segment(3), nullptr);
  EXPECT_EQ(store(100, 4).stored_chunks, 4u);
  ASSERT_FALSE(logged.empty());
}

TEST_F(ChangingMemory, WhatIsTooMuchOfASegmentComesBackAsASmallerOne) {
  begin();
  store(0, 16);
  resize(14 * physical);
  EXPECT_EQ(capacity(), 14 * physical);
  EXPECT_EQ(group->memory->segments(), 5u);
  EXPECT_EQ(group->memory->range_of(4).bytes, 2 * physical);
  resize(20 * physical); // behind the short one
  EXPECT_EQ(capacity(), 20 * physical);
  EXPECT_EQ(group->memory->range_of(5).offset, 5 * 4 * physical);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  EXPECT_EQ(load(100, 8).chunks, 8u);
  EXPECT_TRUE(warned.empty()) << warned.front();
}

TEST_F(ChangingMemory, WhatIsHeldStaysUntilItIsLetGo) {
  begin();
  store(0, 16);
  auto held = hold(group->host, 12, 4);
  resize(8 * physical);
  EXPECT_EQ(group->memory->size(), 8 * physical);
  EXPECT_EQ(present(group->host, 12, 4), 4u);
  EXPECT_EQ(group->memory->leaving_bytes(), 4 * physical);
  EXPECT_EQ(load(12, 4).chunks, 4u);
  EXPECT_TRUE(delivered(15));
  held.reset();
  settle();
  EXPECT_EQ(present(group->host, 12, 4), 0u);
  EXPECT_EQ(group->memory->leaving_bytes(), 0u);
}

TEST_F(ChangingMemory, ASegmentThatAClientMapsKeepsItsMemoryUntilTheClientEnds) {
  begin();
  store(0, 16);
  std::vector<std::shared_ptr<const arena>> mapped;
  for (uint32_t i = 0; i < 4; ++i)
    mapped.push_back(group->memory->lend(i));
  resize(12 * physical);
  EXPECT_EQ(capacity(), 12 * physical);
  EXPECT_EQ(group->memory->leaving_bytes(), 4 * physical);
  mapped.clear();
  EXPECT_EQ(group->memory->leaving_bytes(), 0u);
}

TEST_F(ChangingMemory, OneThatNoClientMapsGoesFirst) {
  begin();
  auto mapped = group->memory->lend(3);
  resize(12 * physical);
  EXPECT_EQ(group->memory->segment(2), nullptr);
  EXPECT_NE(group->memory->segment(3), nullptr);
}

TEST_F(ChangingMemory, TheDiskStillHasWhatLeftAndItsRingLetsGo) {
  begin(32);
  store(0, 16);
  resize(4 * physical);
  EXPECT_EQ(present(group->host, 0, 16), 4u);
  EXPECT_EQ(group->memory->leaving_bytes(), 0u) << "the disk's actor kept a segment";
  EXPECT_EQ(load(0, 16).chunks, 16u);
  EXPECT_TRUE(delivered(15));
  resize(16 * physical);
  EXPECT_EQ(load(0, 16).chunks, 16u);
  EXPECT_EQ(present(group->host, 0, 16), 16u);
}

TEST_F(ChangingMemory, WhatWasUsedIsWrittenBeforeItLeavesIfTheDiskHasLostIt) {
  begin(32, demotion_mode::selective);
  store(0, 16);
  load(12, 4); // of the last segment
  EXPECT_EQ(present(disk_tier(), 0, 16), 4u);
  forget(disk_tier(), 12, 4);
  resize(8 * physical);
  EXPECT_EQ(present(group->host, 0, 16), 8u);
  EXPECT_EQ(present(disk_tier(), 12, 4), 4u);
  EXPECT_EQ(present(disk_tier(), 0, 12), 0u) << "nothing else was used";
  EXPECT_EQ(group->memory->leaving_bytes(), 0u);
  EXPECT_EQ(load(12, 4).chunks, 4u);
  EXPECT_TRUE(delivered(15));
}

TEST_F(ChangingMemory, SaysWhyItCannotGrowAndKeepsWhatItHas) {
  begin();
  store(0, 4);
  resize(uint64_t{1} << 50);
  EXPECT_EQ(capacity(), 16 * physical);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  ASSERT_EQ(warned.size(), 1u);
  EXPECT_NE(warned[0].find("could not grow"), std::string::npos) << warned[0];
  EXPECT_NE(warned[0].find("restart"), std::string::npos) << warned[0];
}

TEST_F(ChangingMemory, AWindowIsNeverMoreThanAnEighthOfIt) {
  begin();
  resize(8 * physical);
  EXPECT_EQ(group->window_bytes, physical);
  resize(32 * physical);
  EXPECT_EQ(group->window_bytes, 4 * physical);
}
