// A group that ends and starts again on the same disk.
#include "group_fixture.hpp"

#include "storage/superblock.hpp"

#include <cerrno>
#include <fstream>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using runtime::io_code;

namespace {

struct Restart : group_fixture {
  Restart() { start({.host_objects = 32, .disk_objects = 85}); }

  void wrong_bytes_at(uint64_t file_offset) {
    std::fstream file(folder / "store", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(file_offset));
    file.write("wrong", 5);
  }
};

} // namespace

TEST_F(Restart, FindsWhatWasStored) {
  EXPECT_EQ(store(0, 10).stored_chunks, 10u);
  uint64_t used = report(disk_tier()).usage.used_bytes;
  restart();
  EXPECT_EQ(present(group->host, 0, 10), 0u);
  EXPECT_EQ(present(disk_tier(), 0, 10), 10u);
  EXPECT_EQ(report(disk_tier()).usage.used_bytes, used);
  EXPECT_EQ(report(disk_tier()).objects, 10u);
  EXPECT_EQ(load(0, 10).chunks, 10u);
  for (uint64_t n = 0; n < 10; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(Restart, WithoutACheckpointTheJournalIsEnough) {
  store(0, 10);
  restart(false);
  EXPECT_EQ(load(0, 10).chunks, 10u);
  EXPECT_EQ(recovered.damaged_blocks, 0u);
}

TEST_F(Restart, HappensAgainAndAgain) {
  for (uint64_t round = 0; round < 5; ++round) {
    store(round * 10, 10);
    restart(round % 2 == 0);
    EXPECT_EQ(present(disk_tier(), 0, (round + 1) * 10), (round + 1) * 10);
  }
  EXPECT_EQ(load(0, 50).chunks, 50u);
}

TEST_F(Restart, WhatWasEvictedIsNotFound) {
  for (uint64_t first = 0; first < 160; first += 20)
    store(first, 20); // more than the disk holds
  uint64_t objects = report(disk_tier()).objects;
  uint64_t used = report(disk_tier()).usage.used_bytes;
  std::vector<bool> before;
  for (uint64_t n = 0; n < 160; ++n)
    before.push_back(present(disk_tier(), n, 1) == 1);
  restart(false);
  for (uint64_t n = 0; n < 160; ++n)
    EXPECT_EQ(present(disk_tier(), n, 1) == 1, before[n]) << n;
  EXPECT_EQ(report(disk_tier()).objects, objects);
  EXPECT_EQ(report(disk_tier()).usage.used_bytes, used);
}

TEST_F(Restart, EvictionGoesOnAmongWhatWasFound) {
  store(0, 20);
  restart();
  for (uint64_t first = 100; first < 260; first += 20)
    EXPECT_EQ(store(first, 20).stored_chunks, 20u);
  EXPECT_EQ(present(disk_tier(), 240, 20), 20u);
  EXPECT_LT(present(disk_tier(), 0, 20), 20u);
  EXPECT_EQ(report(disk_tier()).held_objects, 0u);
}

TEST_F(Restart, ADamagedObjectIsAMissAndNeverComesBack) {
  store(0, 3);
  uint64_t place = file_place(1);
  restart();
  wrong_bytes_at(place + object_header_bytes + 100);
  EXPECT_EQ(load(0, 3).chunks, 1u);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 1, 1), 0u);
  EXPECT_EQ(load(0, 1).chunks, 1u);
}

TEST_F(Restart, WhatWasClearedDoesNotComeBack) {
  store(0, 10);
  clear(group->host);
  auto cleared = clear(disk_tier());
  EXPECT_EQ(cleared.failure.code, errc::ok) << cleared.failure.text;
  EXPECT_EQ(cleared.objects, 10u);
  EXPECT_EQ(cleared.bytes, 10 * physical);
  EXPECT_EQ(report(disk_tier()).usage.used_bytes, 0u);
  store(20, 5);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 10), 0u);
  EXPECT_EQ(present(disk_tier(), 20, 5), 5u);
  EXPECT_EQ(load(20, 5).chunks, 5u);
  clear(disk_tier(), in->id);
  restart();
  EXPECT_EQ(present(disk_tier(), 20, 5), 0u);
}

TEST_F(Restart, ClearingASpaceThatIsNotOnDiskLeavesTheRest) {
  store(0, 4);
  EXPECT_EQ(clear(disk_tier(), space_id{7}).objects, 0u);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
}

TEST_F(Restart, AClearThatCannotBeMadeDurableSaysSo) {
  store(0, 2);
  ring.fail_next(io_code::fsync, EIO, 1);
  auto cleared = clear(disk_tier());
  EXPECT_EQ(cleared.failure.code, errc::internal);
  EXPECT_NE(cleared.failure.text.find("may be back"), std::string::npos) << cleared.failure.text;
  EXPECT_EQ(present(disk_tier(), 0, 2), 0u);
}

TEST_F(Restart, AJournalThatCannotBeWrittenIsToldOnceAndMendedByACheckpoint) {
  store(0, 1); // the space is known
  uint64_t metadata = paths->file(0)->extents_begin();
  ring.respond([metadata](const runtime::io_request& request) -> std::optional<int32_t> {
    bool of_index = request.code == io_code::write && request.offset < metadata;
    return of_index ? std::optional<int32_t>(-EIO) : std::nullopt;
  });
  store(1, 4);
  ASSERT_EQ(disk_warnings.size(), 1u);
  EXPECT_NE(disk_warnings[0].find("cannot be written down"), std::string::npos) << disk_warnings[0];
  ring.respond([](const runtime::io_request&) -> std::optional<int32_t> { return std::nullopt; });
  store(10, 4);
  EXPECT_EQ(disk_warnings.size(), 2u);
  restart();
  EXPECT_EQ(present(disk_tier(), 0, 5), 5u);
  EXPECT_EQ(present(disk_tier(), 10, 4), 4u);
}

TEST_F(Restart, AFullJournalEndsInACheckpoint) {
  for (uint64_t round = 0; round < 60; ++round) {
    store(0, 20);
    forget_host(0, 20);
    forget(disk_tier(), 0, 20); // 40 records a round: the journal of a small store has room for 672
  }
  store(40, 8);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 20), 0u);
  EXPECT_EQ(present(disk_tier(), 40, 8), 8u);
  EXPECT_EQ(report(disk_tier()).objects, 8u);
}

TEST_F(Restart, AnotherAllocatorDropsWhatItHasNoPlaceFor) {
  store(0, 4);
  wanted.disk_allocator = "free_list";
  restart();
  EXPECT_EQ(unplaced, 0u);
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
  wanted.disk_allocator = "paged";
  wanted.disk_slot_bytes = 2 * physical;
  restart();
  EXPECT_EQ(unplaced, 4u);
  EXPECT_EQ(present(disk_tier(), 0, 4), 0u);
  EXPECT_EQ(report(disk_tier()).usage.used_bytes, 0u);
  EXPECT_EQ(store(0, 4).stored_chunks, 4u);
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
}

// ---- clearing while bytes are on their way ----

TEST_F(Restart, WhatIsClearedWhileItIsWrittenDownIsNotPublishedOnDisk) {
  ring.hold(io_code::write);
  auto stored = begin_store(0, 4);
  settle();
  clear(group->host);
  auto cleared = ask<clear_answer>(disk_tier(), clear_request{});
  settle();
  ring.release(io_code::write);
  settle();
  EXPECT_TRUE(*cleared);
  EXPECT_EQ(present(disk_tier(), 0, 4), 0u);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(report(disk_tier()).usage.used_bytes, 0u);
}

TEST_F(Restart, WhatIsClearedWhileItIsReadIsNotBroughtBack) {
  store(0, 4);
  forget_host(0, 4);
  ring.hold(io_code::read);
  auto loading = begin_load(0, 4);
  settle();
  clear(group->host);
  clear(disk_tier());
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*loading);
  EXPECT_EQ((*loading)->chunks, 0u);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(host_used(), 0u);
  EXPECT_EQ(report(disk_tier()).usage.used_bytes, 0u);
}

TEST_F(Restart, WhoHoldsWhatIsClearedReadsOn) {
  store(0, 2);
  auto held = hold(group->host, 0, 2);
  EXPECT_EQ(clear(group->host).objects, 2u);
  EXPECT_EQ(present(group->host, 0, 2), 0u);
  EXPECT_EQ(host_used(), 2 * physical);
  held.reset();
  settle();
  EXPECT_EQ(host_used(), 0u);
}
