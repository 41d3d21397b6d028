// Loads from disk, write-through, and what goes wrong on the way: errors, short transfers and damaged bytes.
#include "disk_fixture.hpp"

#include <cerrno>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using runtime::io_code;

namespace {

struct DiskTransfers : disk_fixture {
  DiskTransfers() { start({.host_objects = 16, .disk_objects = 85}); }

  void flip(uint64_t number, uint64_t byte) {
    uint64_t place = file_place(number) + byte;
    settle();
    int fd = paths->file(0)->fd();
    char value = 0;
    ASSERT_EQ(::pread(fd, &value, 1, static_cast<off_t>(place)), 1);
    value = static_cast<char>(value ^ 0x20);
    ASSERT_EQ(::pwrite(fd, &value, 1, static_cast<off_t>(place)), 1);
  }
  /// Chunk `gap` of `count` cannot be served: what is before it is delivered, what is behind it is kept.
  void expect_cut(uint64_t gap, size_t count) {
    auto loaded = load(0, count);
    EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
    EXPECT_EQ(loaded.chunks, gap);
    for (uint64_t n = 0; n < count; ++n)
      EXPECT_TRUE(n < gap ? delivered(n) : untouched(n)) << n;
    EXPECT_EQ(present(disk_tier(), gap, 1), 0u) << "it would be found, and fail, again and again";
    EXPECT_EQ(present(disk_tier(), 0, count), count - 1);
    EXPECT_EQ(present(group->host, gap, 1), 0u);
    EXPECT_EQ(present(group->host, 0, count), count - 1);
    EXPECT_EQ(host_used(), (count - 1) * physical);
    EXPECT_EQ(report(group->host).held_objects, 0u);
    EXPECT_EQ(report(disk_tier()).held_objects, 0u);
  }
};

} // namespace

TEST_F(DiskTransfers, WhatIsStoredGoesToDiskAsWellAndNobodyHoldsItThen) {
  store(0, 3);
  EXPECT_EQ(present(disk_tier(), 0, 3), 3u);
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(ring.started(io_code::write), 4u); // and one for the journal
}

TEST_F(DiskTransfers, WriteThroughKeepsTheObjectsInHostMemoryUntilTheyAreOnDisk) {
  ring.hold(io_code::write);
  auto stored = store(0, 2); // the client does not wait for the disk
  EXPECT_EQ(stored.stored_chunks, 2u);
  EXPECT_EQ(report(group->host).held_objects, 2u);
  EXPECT_EQ(present(disk_tier(), 0, 2), 0u);
  ring.release(io_code::write);
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(present(disk_tier(), 0, 2), 2u);
}

TEST_F(DiskTransfers, WhatAStoreFindsThereAlreadyDoesNotDisturbTheRest) {
  store(1, 1);
  EXPECT_EQ(store(0, 4).present_chunks, 1u);
  ASSERT_EQ(present(disk_tier(), 0, 4), 4u);
  forget_host(0, 4);
  EXPECT_EQ(load(0, 4).chunks, 4u); // each with its own checksum
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(DiskTransfers, AWriteThatFailsLeavesNothingOnDiskAndReleasesItsHold) {
  ring.fail_next(io_code::write, EIO);
  store(0, 3);
  EXPECT_EQ(present(disk_tier(), 0, 3), 2u);
  EXPECT_EQ(report(disk_tier()).usage.used_bytes, 2 * physical);
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(present(group->host, 0, 3), 3u);
}

TEST_F(DiskTransfers, WhenTheWholeDiskIsLeasedWriteThroughDropsAndDoesNotWait) {
  size_t room = paths->file(0)->extents_bytes() / physical;
  std::vector<hold_ptr> kept;
  for (uint64_t n = 0; n < room; ++n) {
    ASSERT_EQ(store(n, 1).stored_chunks, 1u);
    kept.push_back(hold(disk_tier(), n, 1));
  }
  store(200, 2);
  EXPECT_EQ(present(group->host, 200, 2), 2u);
  EXPECT_EQ(present(disk_tier(), 200, 2), 0u);
  EXPECT_EQ(report(group->host).held_objects, 0u);
  kept.clear();
  settle();
  store(210, 1);
  EXPECT_EQ(present(disk_tier(), 210, 1), 1u);
}

TEST_F(DiskTransfers, ALoadBringsChunksFromDiskToHostMemoryAndDeliversThem) {
  on_disk(0, 4);
  auto loaded = load(0, 4);
  EXPECT_EQ(loaded.failure.code, errc::ok) << loaded.failure.text;
  EXPECT_EQ(loaded.chunks, 4u);
  EXPECT_EQ(loaded.bytes_by_tier[static_cast<size_t>(tier_kind::disk)], 4 * payload);
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  uint64_t reads = ring.started(io_code::read);
  EXPECT_EQ(load(0, 4).bytes_by_tier[static_cast<size_t>(tier_kind::host)], 4 * payload);
  EXPECT_EQ(ring.started(io_code::read), reads);
}

TEST_F(DiskTransfers, APrefixMayAlternateBetweenTiers) {
  on_disk(0, 4);
  load(2, 1);
  auto loaded = load(0, 4);
  EXPECT_EQ(loaded.chunks, 4u);
  EXPECT_EQ(loaded.bytes_by_tier[static_cast<size_t>(tier_kind::disk)], 3 * payload);
  EXPECT_EQ(loaded.bytes_by_tier[static_cast<size_t>(tier_kind::host)], payload);
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(DiskTransfers, TwoLoadsOfTheSameChunksShareOneRead) {
  on_disk(0, 3);
  ring.hold(io_code::read);
  auto first = begin_load(0, 3);
  settle();
  auto second = begin_load(0, 3);
  settle();
  EXPECT_FALSE(*first);
  EXPECT_FALSE(*second);
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*first && *second);
  EXPECT_EQ((*first)->chunks, 3u);
  EXPECT_EQ((*second)->chunks, 3u);
  EXPECT_EQ(ring.started(io_code::read), 3u);
  EXPECT_TRUE(delivered(2));
}

TEST_F(DiskTransfers, AWaiterOfASharedReadTakesOverWhenTheReaderIsCancelled) {
  on_disk(0, 3);
  ring.hold(io_code::read);
  auto of = context();
  auto first = begin_load(0, 3, of);
  settle();
  auto second = begin_load(0, 3);
  settle();
  of->ended = errc::cancelled;
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*first && *second);
  EXPECT_EQ((*first)->failure.code, errc::cancelled);
  EXPECT_EQ((*second)->chunks, 3u);
  EXPECT_TRUE(delivered(0));
}

TEST_F(DiskTransfers, ACancelledWaiterLeavesTheSharedReadAlone) {
  on_disk(0, 3);
  ring.hold(io_code::read);
  auto first = begin_load(0, 3);
  settle();
  auto of = context();
  auto second = begin_load(0, 3, of);
  settle();
  of->ended = errc::cancelled;
  caf::anon_send(group->host, sweep_notice{});
  settle();
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->failure.code, errc::cancelled);
  EXPECT_FALSE(*first);
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*first);
  EXPECT_EQ((*first)->chunks, 3u);
}

TEST_F(DiskTransfers, ShortReadsAndWritesGoOn) {
  ring.shorten(io_code::write, 4096);
  ring.shorten(io_code::read, 4096);
  on_disk(0, 3);
  EXPECT_EQ(load(0, 3).chunks, 3u);
  for (uint64_t n = 0; n < 3; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(DiskTransfers, AReadErrorCutsThePrefixAndTheObjectIsForgotten) {
  on_disk(0, 4);
  ring.fail_next(io_code::read, EIO);
  expect_cut(0, 4);
}

TEST_F(DiskTransfers, AReadErrorInTheMiddleKeepsWhatCameBehindIt) {
  on_disk(0, 4);
  uint64_t place = file_place(2);
  ring.respond([place](const runtime::io_request& request) -> std::optional<int32_t> {
    return request.code == io_code::read && request.offset == place ? std::optional(-EIO) : std::nullopt;
  });
  expect_cut(2, 4);
}

TEST_F(DiskTransfers, AFileThatEndsEarlyIsAReadError) {
  on_disk(0, 3);
  uint64_t place = file_place(1);
  ring.respond([place](const runtime::io_request& request) -> std::optional<int32_t> {
    return request.code == io_code::read && request.offset == place ? std::optional(0) : std::nullopt;
  });
  expect_cut(1, 3);
}

TEST_F(DiskTransfers, AFlippedByteOfThePayloadIsNeverDelivered) {
  on_disk(0, 4);
  flip(1, object_header_bytes + 4321);
  expect_cut(1, 4);
}

TEST_F(DiskTransfers, AFlippedByteOfTheHeaderIsNeverDelivered) {
  on_disk(0, 4);
  flip(3, 40);
  expect_cut(3, 4);
}

TEST_F(DiskTransfers, BytesOfAnotherObjectAreNeverDelivered) {
  on_disk(0, 3);
  uint64_t from = file_place(2);
  uint64_t to = file_place(0);
  std::vector<char> bytes(physical);
  int fd = paths->file(0)->fd();
  ASSERT_EQ(::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(from)),
            static_cast<ssize_t>(bytes.size()));
  ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(to)),
            static_cast<ssize_t>(bytes.size()));
  expect_cut(0, 3);
}

TEST_F(DiskTransfers, AReadInFlightKeepsItsMemoryAlthoughItsLoadWasKilled) {
  on_disk(0, 4);
  ring.hold(io_code::read);
  caf::actor worker;
  auto killed = begin_load(0, 4, nullptr, &worker);
  settle();
  stop(worker);
  EXPECT_TRUE(*killed);
  EXPECT_EQ(host_used(), 4 * physical); // the kernel may be writing there
  EXPECT_EQ(report(disk_tier()).held_objects, 4u);
  ring.release(io_code::read);
  settle();
  EXPECT_EQ(host_used(), 0u);
  EXPECT_EQ(report(disk_tier()).held_objects, 0u);
}

TEST_F(DiskTransfers, RequestsThatADeadDiskOwesAnAnswerEndAsInternalAndGiveEverythingBack) {
  on_disk(0, 2);
  ring.hold(io_code::read);
  auto loading = begin_load(0, 2);
  settle();
  stop(group->disk()->mover);
  ring.release(io_code::read);
  settle();
  ASSERT_TRUE(*loading);
  EXPECT_EQ((*loading)->failure.code, errc::internal);
  EXPECT_EQ(host_used(), 0u);
  EXPECT_EQ(report(disk_tier()).held_objects, 0u);
}

TEST_F(DiskTransfers, WriteThroughOutlivesItsDiskAndReleasesItsHolds) {
  ring.hold(io_code::write);
  store(0, 2);
  stop(group->disk()->mover);
  ring.release(io_code::write);
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
  store(5, 1);
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(report(disk_tier()).usage.used_bytes, 0u);
}

// ---- lookups over both tiers ----

TEST_F(DiskTransfers, ALookupFindsAPrefixThatAlternatesAndHoldsExactlyThat) {
  on_disk(0, 6);
  load(0, 1);
  load(2, 1);
  load(5, 1);
  forget(disk_tier(), 0, 1);
  forget(disk_tier(), 4, 1); // nobody has chunk 4
  auto found = lookup(chain(0, 6), true);
  EXPECT_EQ(found.failure.code, errc::ok);
  EXPECT_EQ(found.plan.found_chunks, 4u);
  EXPECT_EQ(found.plan.chunk_tiers,
            (std::vector{tier_kind::host, tier_kind::disk, tier_kind::host, tier_kind::disk}));
  settle();
  EXPECT_EQ(report(group->host).held_objects,
            1u); // 0; 2 is held on disk, for it would keep 1 in host memory once it is there
  EXPECT_EQ(report(disk_tier()).held_objects, 3u); // 1, 2 and 3, not 5
  found = {};
  settle();
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(report(disk_tier()).held_objects, 0u);
}

TEST_F(DiskTransfers, ALookupWithoutALeaseHoldsNothing) {
  store(0, 2);
  auto found = lookup(chain(0, 2));
  EXPECT_EQ(found.plan.found_chunks, 2u);
  EXPECT_TRUE(found.held.empty());
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(DiskTransfers, ALeaseOfNothingHoldsNothing) {
  on_disk(1, 2); // chunk 0 is missing
  auto found = lookup(chain(0, 3), true);
  EXPECT_EQ(found.plan.found_chunks, 0u);
  EXPECT_EQ(held_in(found.held, tier_kind::disk), nullptr);
  EXPECT_EQ(report(disk_tier()).held_objects, 0u);
}

TEST_F(DiskTransfers, LeasedChunksSurvivePressureWhereTheyAreHeld) {
  store(0, 4);
  forget_host(2, 2);
  auto leased = lookup(chain(0, 4), true);
  ASSERT_EQ(leased.plan.found_chunks, 4u);
  for (uint64_t first = 20; first < 180; first += 10)
    store(first, 10);
  EXPECT_EQ(present(group->host, 0, 2), 2u);
  EXPECT_EQ(present(disk_tier(), 2, 2), 2u);
}
