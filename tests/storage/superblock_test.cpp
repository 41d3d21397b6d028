#include "storage/superblock.hpp"

#include "bytes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace terrace {
namespace superblock_test {

using bytes_4k = std::array<std::byte, superblock_bytes>;
using both_copies = std::array<std::byte, 2 * superblock_bytes>;

superblock sample() {
  superblock block{.sequence = 6, .epoch = 9, .forgotten_below = 3, .capacity_bytes = 1ULL << 30};
  for (size_t i = 0; i < 16; ++i) {
    block.volume.bytes[i] = static_cast<uint8_t>(i);
    block.boot.bytes[i] = static_cast<uint8_t>(0x80 + i);
    block.owner.machine[i] = static_cast<uint8_t>(0xa0 + i);
  }
  block.owner.group = "default";
  block.layout = {0x10000, 0x20000, 0x30000, 0x40000, 0xb0000};
  block.path_index = 1;
  block.path_count = 2;
  block.stripe_bytes = 2 << 20;
  block.floors = {{{0xee, 0xff}, 8}};
  return block;
}

bytes_4k encoded(const superblock& block) {
  bytes_4k bytes;
  encode(block, bytes);
  return bytes;
}

both_copies copies(const bytes_4k& first, const bytes_4k& second) {
  both_copies both;
  std::copy(first.begin(), first.end(), both.begin());
  std::copy(second.begin(), second.end(), both.begin() + superblock_bytes);
  return both;
}

superblock with_sequence(uint64_t sequence) {
  superblock block = sample();
  block.sequence = sequence;
  return block;
}

TEST(Superblock, ComesBackAsItWasWritten) { EXPECT_EQ(decode_superblock(encoded(sample())), sample()); }

// Disks contain these bytes: if this test fails, change the version, not the test.
TEST(Superblock, HasItsGoldenBytes) {
  auto bytes = encoded(sample());
  EXPECT_EQ(hex_of(bytes, 0, 16), "5445525253544f52"
                                  "02000000"
                                  "00000000");
  EXPECT_EQ(hex_of(bytes, 16, 32), "000102030405060708090a0b0c0d0e0f808182838485868788898a8b8c8d8e8f");
  EXPECT_EQ(hex_of(bytes, 48, 16), "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
  EXPECT_EQ(hex_of(bytes, 64, 16), "64656661756c74000000000000000000");
  EXPECT_EQ(hex_of(bytes, 128, 32), "0600000000000000"
                                    "0900000000000000"
                                    "0300000000000000"
                                    "0000004000000000");
  EXPECT_EQ(hex_of(bytes, 160, 40), "0000010000000000"
                                    "0000020000000000"
                                    "0000030000000000"
                                    "0000040000000000"
                                    "00000b0000000000");
  EXPECT_EQ(hex_of(bytes, 200, 16), "0000200000000000"
                                    "0100"
                                    "0200"
                                    "01000000");
  EXPECT_EQ(hex_of(bytes, 216, 8), "9015d451e122d64f");
  EXPECT_EQ(hex_of(bytes, 224, 40), "eeff000000000000000000000000000000000000000000000000000000000000"
                                    "0800000000000000");
  EXPECT_EQ(hex_of(bytes, 2784, 16), "00000000000000000000000000000000");
}

TEST(Superblock, NamesThePathsThatWereMissing) {
  superblock block = sample();
  block.missing = path_bit(1) | path_bit(8);
  auto bytes = encoded(block);
  EXPECT_EQ(hex_of(bytes, 2784, 16), "02010000000000000000000000000000");
  EXPECT_EQ(decode_superblock(bytes), block);
}

TEST(Superblock, ZerosAreAStoreThatWasNeverFinished) {
  EXPECT_EQ(decode_superblock(bytes_4k{}).error().code, errc::not_found);
  EXPECT_EQ(newest_superblock(both_copies{}).error().code, errc::not_found);
}

TEST(Superblock, OtherBytesAreNotOurs) {
  auto bytes = encoded(sample());
  bytes[0] = std::byte{'X'};
  EXPECT_EQ(decode_superblock(bytes).error().code, errc::denied);
  EXPECT_EQ(newest_superblock(copies(bytes, bytes_4k{})).error().code, errc::denied);
}

TEST(Superblock, AnotherVersionAndDamageAreToldApart) {
  auto version = encoded(sample());
  version[8] = std::byte{1};
  EXPECT_EQ(decode_superblock(version).error().code, errc::unsupported);
  auto damaged = encoded(sample());
  damaged[4000] = std::byte{1};
  EXPECT_EQ(decode_superblock(damaged).error().code, errc::internal);
  EXPECT_EQ(newest_superblock(copies(damaged, damaged)).error().code, errc::internal);
}

TEST(Superblock, TheNewestSoundCopyCounts) {
  auto old = encoded(with_sequence(6));
  auto young = encoded(with_sequence(7));
  EXPECT_EQ(newest_superblock(copies(old, young))->sequence, 7u);
  EXPECT_EQ(newest_superblock(copies(encoded(with_sequence(8)), young))->sequence, 8u);
  young[100] = std::byte{1}; // torn while it was written
  EXPECT_EQ(newest_superblock(copies(old, young))->sequence, 6u);
  EXPECT_EQ(newest_superblock(copies(old, bytes_4k{}))->sequence, 6u);
}

TEST(Superblock, AStoreOfAnotherVersionIsRefused) {
  auto version = encoded(with_sequence(7));
  version[8] = std::byte{3};
  EXPECT_EQ(newest_superblock(copies(version, version)).error().code, errc::unsupported);
  EXPECT_EQ(newest_superblock(copies(version, bytes_4k{})).error().code, errc::unsupported);
}

TEST(Superblock, WritingTheNextCopyNeverTouchesTheNewest) {
  for (uint64_t sequence : {0, 1, 2, 7})
    EXPECT_NE(superblock_offset(sequence), superblock_offset(sequence + 1));
}

TEST(Superblock, ForgettingASpaceRaisesItsFloorAlone) {
  superblock block{.epoch = 4};
  forget_space(block, {1});
  EXPECT_EQ(block.epoch, 5u);
  EXPECT_EQ(floor_of(block, {1}), 5u);
  EXPECT_EQ(floor_of(block, {2}), 0u);
  forget_space(block, {1});
  EXPECT_EQ(floor_of(block, {1}), 6u);
  EXPECT_EQ(block.floors.size(), 1u);
}

TEST(Superblock, ForgettingAllRaisesEveryFloor) {
  superblock block{.epoch = 4};
  forget_space(block, {1});
  forget_all(block);
  EXPECT_EQ(floor_of(block, {1}), 6u);
  EXPECT_EQ(floor_of(block, {2}), 6u);
  EXPECT_TRUE(block.floors.empty());
}

TEST(Superblock, WithoutRoomForOneMoreSpaceAllIsForgotten) {
  superblock block;
  for (uint8_t i = 0; i < superblock::floors_max; ++i)
    forget_space(block, {1, i});
  EXPECT_EQ(floor_of(block, {9}), 0u);
  forget_space(block, {2});
  EXPECT_EQ(floor_of(block, {2}), block.epoch);
  EXPECT_EQ(floor_of(block, {9}), block.epoch);
}

} // namespace superblock_test
} // namespace terrace
