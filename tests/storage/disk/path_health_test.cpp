#include "storage/disk/path_health.hpp"

#include <gtest/gtest.h>

#include <cerrno>

using namespace terrace;
using namespace std::chrono_literals;

namespace path_health_test {

constexpr auto reading = disk_direction::read;
constexpr auto writing = disk_direction::write;

struct PathHealth : ::testing::Test {
  path_health path{"/data/volume", {.failures_max = 2, .first_pause = 100ms, .stall_after = 400ms}};
  path_health::time_point now{};

  void degrade(disk_direction direction) {
    EXPECT_FALSE(path.completed(direction, -EILSEQ, now));
    EXPECT_TRUE(path.completed(direction, -EILSEQ, now));
  }
  /// Starts an operation that then stalls.
  void stall(uint64_t tag, disk_direction direction) {
    path.started(tag, direction);
    for (uint32_t tick = 0; tick < ticks_of_patience; ++tick)
      EXPECT_TRUE(path.tick().empty());
    EXPECT_EQ(path.tick(), std::vector{tag});
  }
};

TEST_F(PathHealth, IsInServiceAtFirst) {
  EXPECT_TRUE(path.reads());
  EXPECT_TRUE(path.writes());
  EXPECT_EQ(path.reason(), "");
  EXPECT_TRUE(path.admit(reading).granted);
  EXPECT_FALSE(path.admit(writing).trial);
}

TEST_F(PathHealth, FailuresInARowTakeItOutOfService) {
  degrade(writing);
  EXPECT_TRUE(path.reads());
  EXPECT_FALSE(path.writes());
  EXPECT_FALSE(path.admit(writing).granted);
  EXPECT_TRUE(path.admit(reading).granted);
  EXPECT_EQ(path.pause(writing), 100ms);
  EXPECT_EQ(path.error_of_waiting(writing), EILSEQ);
  EXPECT_EQ(path.error_of_waiting(reading), 0);
  EXPECT_NE(path.reason().find("/data/volume cannot be written"), std::string::npos) << path.reason();
  EXPECT_NE(path.reason().find("retried every 100 ms"), std::string::npos) << path.reason();
}

TEST_F(PathHealth, InterruptedAndCancelledOperationsAreNoFailures) {
  for (int harmless : {EAGAIN, EINTR, ECANCELED, EAGAIN})
    EXPECT_FALSE(path.completed(reading, -harmless, now));
  EXPECT_TRUE(path.reads());
}

TEST_F(PathHealth, ATransferOfNothingIsAFailure) {
  EXPECT_FALSE(path.completed(reading, 0, now));
  EXPECT_TRUE(path.completed(reading, 0, now));
  EXPECT_EQ(path.error_of_waiting(reading), EIO);
}

TEST_F(PathHealth, APathThatCannotBeReadIsNotWritten) {
  degrade(reading);
  EXPECT_FALSE(path.writes());
  EXPECT_FALSE(path.admit(writing).granted);
  EXPECT_TRUE(path.healthy(writing));
}

TEST_F(PathHealth, OneRequestTriesTheWrites) {
  degrade(writing);
  EXPECT_TRUE(path.begin_trial(writing));
  EXPECT_TRUE(path.writes());
  auto first = path.admit(writing);
  EXPECT_TRUE(first.granted);
  EXPECT_TRUE(first.trial);
  EXPECT_EQ(path.error_of_waiting(writing), 0);
  EXPECT_FALSE(path.admit(writing).granted);
  EXPECT_TRUE(path.end_trial(writing, 0, now));
  EXPECT_TRUE(path.healthy(writing));
}

TEST_F(PathHealth, AFailedTrialBeginsALongerPause) {
  degrade(writing);
  EXPECT_TRUE(path.begin_trial(writing));
  EXPECT_TRUE(path.admit(writing).trial);
  EXPECT_FALSE(path.end_trial(writing, ENOSPC, now));
  EXPECT_EQ(path.pause(writing), 200ms);
  EXPECT_FALSE(path.writes());
}

TEST_F(PathHealth, RequestsDoNotTryReads) {
  degrade(reading);
  EXPECT_TRUE(path.begin_trial(reading));
  EXPECT_FALSE(path.admit(reading).granted); // the superblock is read
  EXPECT_EQ(path.error_of_waiting(reading), 0);
  EXPECT_TRUE(path.end_trial(reading, 0, now));
  EXPECT_TRUE(path.admit(reading).granted);
}

TEST_F(PathHealth, ATrialWaitsForStalledOperations) {
  stall(3, reading);
  EXPECT_TRUE(path.stalled(reading, now));
  EXPECT_NE(path.reason().find("1 operation has not completed for more than 400 ms"), std::string::npos)
      << path.reason();
  EXPECT_FALSE(path.begin_trial(reading));
  EXPECT_TRUE(path.awaits_stalled(reading));
  EXPECT_TRUE(path.ended(3));
  EXPECT_TRUE(path.begin_trial(reading));
  EXPECT_FALSE(path.awaits_stalled(reading));
}

TEST_F(PathHealth, AnOperationThatEndsInTimeIsNotStalled) {
  path.started(0, writing);
  path.tick();
  EXPECT_FALSE(path.ended(0));
  EXPECT_FALSE(path.watch().worth_a_tick());
}

TEST_F(PathHealth, AStalledJournalCountsLikeAWrite) {
  EXPECT_TRUE(path.journal_stalled(true, now));
  EXPECT_TRUE(path.reads());
  EXPECT_FALSE(path.writes());
  EXPECT_FALSE(path.begin_trial(writing));
  EXPECT_TRUE(path.awaits_stalled(writing));
  EXPECT_FALSE(path.journal_stalled(false, now));
  EXPECT_TRUE(path.begin_trial(writing));
}

TEST_F(PathHealth, ATrialDoesNotSucceedBesideStalledOperations) {
  degrade(reading);
  EXPECT_TRUE(path.begin_trial(reading));
  stall(0, reading);
  EXPECT_FALSE(path.end_trial(reading, 0, now));
  EXPECT_FALSE(path.reads());
}

struct TrialRead : ::testing::Test {
  std::array<std::byte, 2 * superblock_bytes> both{};
  superblock block{.sequence = 1, .capacity_bytes = 1ULL << 30};
  int32_t whole = 2 * superblock_bytes;

  TrialRead() {
    block.volume = random_volume_id();
    block.path_index = 1;
    block.path_count = 2;
    block.layout = {0x10000, 0x20000, 0x30000, 0x40000, 0xb0000};
    encode(block, std::span(both).first<superblock_bytes>());
  }
};

TEST_F(TrialRead, TheSuperblockOfThePathIsNoError) {
  EXPECT_EQ(error_of_trial(whole, both, block.volume, 1), 0);
}

TEST_F(TrialRead, ReportsTheErrorOfTheDevice) {
  EXPECT_EQ(error_of_trial(-ENODEV, both, block.volume, 1), ENODEV);
  EXPECT_EQ(error_of_trial(superblock_bytes, both, block.volume, 1), EIO);
}

TEST_F(TrialRead, AnotherFileIsStale) {
  EXPECT_EQ(error_of_trial(whole, both, random_volume_id(), 1), ESTALE);
  EXPECT_EQ(error_of_trial(whole, both, block.volume, 0), ESTALE);
  both.fill(std::byte{0});
  EXPECT_EQ(error_of_trial(whole, both, block.volume, 1), ESTALE);
}

} // namespace path_health_test
