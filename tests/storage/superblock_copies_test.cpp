#include "storage/superblock.hpp"

#include "simulated_device.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

superblock example(uint64_t sequence) {
  superblock block;
  block.volume.bytes = {1, 2, 3};
  block.sequence = sequence;
  block.epoch = sequence * 10;
  return block;
}

TEST(SuperblockCopies, AreBothWrittenAndTheNewestCounts) {
  simulated_device device(1 << 20);
  superblock block = example(4);
  ASSERT_TRUE(write_superblocks(device, block));
  EXPECT_EQ(block.sequence, 6u);
  auto copies = read_superblocks(device);
  ASSERT_TRUE(copies);
  EXPECT_EQ(*copies->each[0], block);
  EXPECT_EQ(copies->each[1]->sequence, 5u);
  EXPECT_EQ(*copies->newest, block);
}

TEST(SuperblockCopies, ADamagedOneIsNamedButNotOneThatWasNeverWritten) {
  simulated_device device(1 << 20);
  superblock block = example(0);
  ASSERT_TRUE(write_superblocks(device, block));
  EXPECT_EQ(describe_damaged_copy(*read_superblocks(device)), "");
  device.flip_bit(8 * 100);
  std::string text = describe_damaged_copy(*read_superblocks(device));
  EXPECT_EQ(text.find("copy 0: "), 0u) << text;
  simulated_device killed(1 << 20); // killed while the volume was created
  superblock first = example(0);
  killed.fail_after(2);
  EXPECT_FALSE(write_superblocks(killed, first));
  std::mt19937_64 dice(1);
  killed.crash({.lost = 0}, dice);
  auto copies = read_superblocks(killed);
  ASSERT_TRUE(copies && copies->newest);
  EXPECT_EQ(describe_damaged_copy(*copies), "");
}

TEST(SuperblockCopies, OneIsWholeWhereverTheWritingEnds) {
  for (uint64_t crash = 0; crash < 5; ++crash) {
    simulated_device device(1 << 20);
    superblock block = example(4);
    ASSERT_TRUE(write_superblocks(device, block));
    device.fail_after(crash);
    superblock next = example(block.sequence);
    next.epoch = 1000;
    EXPECT_EQ(write_superblocks(device, next).has_value(), crash == 4);
    std::mt19937_64 dice(crash);
    device.crash({.lost = 1}, dice);
    auto copies = read_superblocks(device);
    ASSERT_TRUE(copies && copies->newest);
    EXPECT_EQ(copies->newest->epoch, crash < 2 ? block.epoch : 1000);
  }
}

TEST(SuperblockCopies, ErasingKeepsTheNewestUntilTheEnd) {
  for (uint64_t crash = 0; crash < 7; ++crash)
    for (simulated_device::crash_faults faults : {simulated_device::crash_faults{0, 0}, {1, 0}, {0, 1}}) {
      simulated_device device(1 << 20);
      superblock block = example(4);
      ASSERT_TRUE(write_superblocks(device, block));
      device.fail_after(crash);
      EXPECT_EQ(erase_superblocks(device, block.sequence).has_value(), crash == 6);
      std::mt19937_64 dice(crash);
      device.crash(faults, dice);
      auto copies = read_superblocks(device);
      ASSERT_TRUE(copies);
      errc state = copies->newest ? errc::ok : copies->newest.error().code;
      EXPECT_NE(state, errc::denied) << "a volume that is wiped is no file of another kind";
      EXPECT_EQ(copies->newest.value_or(block), block);
      EXPECT_TRUE(crash >= 3 || state == errc::ok);
      EXPECT_TRUE(crash < 6 || state == errc::not_found);
    }
}

TEST(SuperblockCopies, AnUnreadableOneIsPassedOver) {
  simulated_device device(1 << 20);
  superblock block = example(4);
  ASSERT_TRUE(write_superblocks(device, block));
  device.make_unreadable(0);
  auto copies = read_superblocks(device);
  ASSERT_TRUE(copies);
  EXPECT_EQ(copies->newest->sequence, 5u);
  EXPECT_EQ(copies->each[0].error().text, "Input/output error");
  device.make_unreadable(superblock_bytes);
  auto none = read_superblocks(device);
  ASSERT_FALSE(none) << "an unreadable volume must not be taken for a new one";
  EXPECT_EQ(none.error().code, errc::internal);
}

TEST(SuperblockCopies, OfAnEmptyFileThereAreNone) {
  simulated_device device(0);
  auto copies = read_superblocks(device);
  ASSERT_TRUE(copies);
  EXPECT_EQ(copies->newest.error().code, errc::not_found);
}

} // namespace
} // namespace terrace
