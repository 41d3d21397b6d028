#include "storage/recovery.hpp"

#include "simulated_device.hpp"
#include "storage/volume_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace terrace {
namespace recovery_test {

constexpr uint64_t file_bytes = 1 << 20;

index_record object(uint64_t number, uint64_t offset, uint64_t blocks = 2) {
  index_record r;
  r.space = 1;
  r.chunk.bytes[0] = static_cast<uint8_t>(number);
  r.generation = first_generation(3) + number;
  r.offset = offset;
  r.physical_bytes = blocks * disk_alignment_bytes;
  return r;
}

class Recovery : public testing::Test {
 protected:
  Recovery() {
    block.volume.bytes = {7};
    block.epoch = 4;
    block.layout = layout_for(file_bytes);
  }

  void journal(uint64_t sequence, std::vector<index_record> records) {
    std::array<std::byte, record_block_bytes> bytes;
    encode_block({block_kind::journal, block.volume, sequence, 0}, records, bytes);
    uint64_t ring = block.layout.journal_bytes / record_block_bytes;
    device.write(block.layout.journal_begin + sequence % ring * record_block_bytes, bytes);
  }

  void checkpoint(uint64_t number, uint64_t journal_sequence, std::vector<index_record> records) {
    std::array<std::byte, record_block_bytes> bytes;
    uint64_t area = block.layout.checkpoint_area(number % 2);
    encode_block({block_kind::image, block.volume, number, 0}, records, bytes);
    device.write(area + record_block_bytes, bytes);
    encode(checkpoint_header{block.volume, number, journal_sequence, 1, records.size()}, bytes);
    device.write(area, bytes);
  }

  std::vector<uint64_t> offsets() {
    found = recover(device, block, arena_bytes);
    std::vector<uint64_t> list;
    for (const index_record& r : found.objects)
      list.push_back(r.offset);
    return list;
  }

  const index_record space = space_record(1, {5, 6});
  superblock block;
  simulated_device device{file_bytes};
  uint64_t arena_bytes = file_bytes / 2;
  recovered_volume found;
};

using list = std::vector<uint64_t>;

TEST_F(Recovery, ANewStoreHoldsNothing) {
  EXPECT_EQ(offsets(), list{});
  EXPECT_EQ(found.position.next_sequence, 1u);
  EXPECT_EQ(found.position.live_from, 1u);
  EXPECT_EQ(found.next_space_number, 1u);
}

TEST_F(Recovery, FindsWhatTheJournalSays) {
  journal(1, {space, object(1, 0)});
  journal(2, {object(2, 8192), removal_of(object(1, 0))});
  EXPECT_EQ(offsets(), list{8192});
  EXPECT_EQ(found.objects[0], object(2, 8192));
  EXPECT_EQ(found.spaces, (std::vector<recovered_space>{{1, {5, 6}}}));
  EXPECT_EQ(found.position.next_sequence, 3u);
  EXPECT_EQ(found.position.live_from, 1u);
  EXPECT_EQ(found.next_space_number, 2u);
}

TEST_F(Recovery, TheJournalGoesOnFromTheCheckpoint) {
  journal(1, {space, object(1, 0)});
  checkpoint(1, 2, {space, object(2, 8192), object(3, 16384)});
  journal(2, {removal_of(object(2, 8192)), object(4, 8192)});
  EXPECT_EQ(offsets(), (list{16384, 8192})) << "by generation; block 1 is older than the checkpoint";
  EXPECT_EQ(found.position.checkpoint_number, 1u);
  EXPECT_EQ(found.position.live_from, 2u);
}

TEST_F(Recovery, TheNewerCheckpointCounts) {
  checkpoint(2, 5, {space, object(2, 8192)});
  checkpoint(1, 1, {space, object(1, 0)});
  EXPECT_EQ(offsets(), list{8192});
  EXPECT_EQ(found.position.next_sequence, 5u);
}

TEST_F(Recovery, WithoutTheNewerHeaderTheOlderCheckpointCounts) {
  checkpoint(1, 1, {space, object(1, 0)});
  checkpoint(2, 5, {space, object(2, 8192)});
  device.flip_bit(8 * block.layout.checkpoint_area(0) + 300);
  EXPECT_EQ(offsets(), list{0});
}

TEST_F(Recovery, ReadingAChangeTwiceDoesNoHarm) {
  checkpoint(1, 1, {space, object(1, 0), object(2, 8192)});
  journal(1, {space, object(1, 0), object(2, 8192), removal_of(object(1, 0))});
  EXPECT_EQ(offsets(), list{8192});
}

TEST_F(Recovery, AHoleInTheJournalCostsItsRecordsAlone) {
  journal(1, {space, object(1, 0)});
  journal(3, {object(3, 16384)});
  EXPECT_EQ(offsets(), (list{0, 16384}));
  EXPECT_EQ(found.counts.missing_blocks, 1u);
  EXPECT_EQ(found.position.next_sequence, 4u);
}

TEST_F(Recovery, DamagedAndUnreadableBlocksAreCountedAndPassedOver) {
  journal(1, {space, object(1, 0)});
  journal(2, {object(2, 8192)});
  journal(3, {object(3, 16384)});
  journal(4, {object(4, 24576)});
  device.flip_bit(8 * (block.layout.journal_begin + 2 * record_block_bytes) + 700);
  device.make_unreadable(block.layout.journal_begin + 3 * record_block_bytes);
  EXPECT_EQ(offsets(), (list{0, 24576}));
  EXPECT_EQ(found.counts.damaged_blocks, 2u);
  EXPECT_EQ(found.counts.missing_blocks, 1u) << "the unreadable one; the damaged one is there";
}

TEST_F(Recovery, BlocksOfTheJournalThatNobodyNeedsMayContainAnything) {
  journal(1, {space, object(1, 0)});
  journal(2, {object(2, 8192)});
  checkpoint(1, 2, {space, object(1, 0)});
  device.flip_bit(8 * (block.layout.journal_begin + record_block_bytes) + 700); // covered by the checkpoint
  device.flip_bit(8 * (block.layout.journal_begin + 3 * record_block_bytes) +
                  700); // a write that a crash cut off
  EXPECT_EQ(offsets(), (list{0, 8192}));
  EXPECT_EQ(found.counts.damaged_blocks + found.counts.missing_blocks, 0u);
}

TEST_F(Recovery, BlocksOfAnotherStoreOrInTheWrongPlaceAreNotRead) {
  journal(1, {space, object(1, 0)});
  std::vector<std::byte> copy(device.bytes().begin() + static_cast<ptrdiff_t>(block.layout.journal_begin),
                              device.bytes().begin() +
                                  static_cast<ptrdiff_t>(block.layout.journal_begin + 8192));
  // Block 1 again, in the place of block 2.
  device.write(block.layout.journal_begin + record_block_bytes, copy);
  EXPECT_EQ(offsets(), list{});
  block.volume.bytes = {8};
  journal(1, {space, object(1, 0)});
  block.volume.bytes = {7};
  EXPECT_EQ(offsets(), list{});
}

TEST_F(Recovery, OfObjectsThatOverlapTheNewestStays) {
  checkpoint(1, 1, {space, object(1, 0, 4), object(2, 8192, 4), object(3, 40960)});
  EXPECT_EQ(offsets(), (list{8192, 40960}));
  EXPECT_EQ(found.counts.overlapping, 1u);
}

TEST_F(Recovery, ObjectsBeyondTheEndOfAShrunkFileAreLeftOut) {
  journal(1, {space, object(1, 0), object(2, 65536 - 4096), object(3, 1 << 20)});
  arena_bytes = 65536;
  EXPECT_EQ(offsets(), list{0});
  EXPECT_EQ(found.counts.outside, 2u);
}

TEST_F(Recovery, WhatWasForgottenStaysForgotten) {
  journal(1, {space, space_record(2, {9}), object(1, 0)});
  auto other = object(2, 8192);
  other.space = 2;
  journal(2, {other});
  forget_space(block, {5, 6});
  EXPECT_EQ(offsets(), list{8192});
  EXPECT_EQ(found.counts.forgotten, 1u);
  EXPECT_EQ(found.spaces, (std::vector<recovered_space>{{2, {9}}}))
      << "spaces without objects are not worth a number";
  EXPECT_EQ(found.next_space_number, 3u) << "but theirs are not given out again";
  forget_all(block);
  EXPECT_EQ(offsets(), list{});
}

TEST_F(Recovery, ObjectsOfASpaceThatIsNotKnownAreLeftOut) {
  journal(1, {object(1, 0)});
  EXPECT_EQ(offsets(), list{});
  EXPECT_EQ(found.counts.unknown_space, 1u);
  EXPECT_EQ(found.next_space_number, 2u);
}

TEST_F(Recovery, GenerationsGoOnBehindAllThatWereFound) {
  journal(1, {space, object(1, 0)});
  offsets();
  EXPECT_EQ(found.position.next_generation, first_generation(4));
  block.epoch = 3; // a clear raised it, but could not make that durable
  offsets();
  EXPECT_EQ(found.position.next_generation, object(1, 0).generation + 1);
}

TEST_F(Recovery, NumbersAfterWhichNoneFollowAreNotBelieved) {
  auto last_space = object(2, 8192);
  last_space.space = UINT32_MAX;
  auto last_generation = object(3, 16384);
  last_generation.generation = UINT64_MAX;
  journal(1, {space, object(1, 0), last_space, last_generation, space_record(UINT32_MAX, {9})});
  uint64_t ring = block.layout.journal_bytes / record_block_bytes;
  journal(UINT64_MAX / ring * ring, {object(4, 24576)});
  checkpoint(2, UINT64_MAX, {space, object(5, 32768)});
  checkpoint(UINT64_MAX, 1, {space, object(6, 40960)});
  EXPECT_EQ(offsets(), list{0});
  EXPECT_EQ(found.counts.damaged_records, 3u);
  EXPECT_EQ(found.next_space_number, 2u);
  EXPECT_EQ(found.position.next_generation, first_generation(4));
  EXPECT_EQ(found.position.next_sequence, 2u);
  EXPECT_EQ(found.position.checkpoint_number, 0u);
}

TEST_F(Recovery, ACheckpointThatClaimsMoreThanItsAreaHoldsIsNone) {
  std::array<std::byte, record_block_bytes> bytes;
  encode(checkpoint_header{block.volume, 1, 1, 1ULL << 40, 1ULL << 50}, bytes);
  device.write(block.layout.checkpoint_area(1), bytes);
  EXPECT_EQ(offsets(), list{});
  EXPECT_EQ(found.position.checkpoint_number, 0u);
}

} // namespace recovery_test
} // namespace terrace
