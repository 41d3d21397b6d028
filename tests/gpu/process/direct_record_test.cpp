#include "gpu/process/direct_record.hpp"

#include <gtest/gtest.h>

namespace terrace::gpu {
namespace {

void read(direct_record& record, uint64_t process, uint64_t batches) {
  for (uint64_t i = 0; i < batches; ++i)
    record.read(process);
}

TEST(DirectRecord, CountsTheFailuresOfOneProcess) {
  direct_record record;
  record.begin(3);
  for (size_t n = 1; n <= direct_record::failures_max; ++n)
    EXPECT_EQ(record.failed(3), n);
  record.begin(4);
  EXPECT_EQ(record.failed(4), 1u) << "another one begins anew";
  EXPECT_FALSE(record.given_up());
}

TEST(DirectRecord, ReadsClearFailures) {
  direct_record record;
  record.begin(1);
  for (int month = 0; month < 1000; ++month) {
    EXPECT_EQ(record.failed(1), 1u);
    read(record, 1, direct_record::reads_per_failure);
  }
  EXPECT_EQ(record.failed(1), 1u);
  EXPECT_EQ(record.failed(1), 2u);
  read(record, 1, direct_record::reads_per_failure - 1);
  EXPECT_EQ(record.failed(1), 3u) << "the first is not cleared yet";
}

TEST(DirectRecord, AWayThatFailsMoreOftenThanItsReadsClearIsGivenUp) {
  direct_record record;
  record.begin(1);
  size_t held = 0, failures = 0;
  for (; held < direct_record::failures_max && failures < 1000; ++failures) {
    held = record.failed(1);
    read(record, 1, direct_record::reads_per_failure / 2);
  }
  EXPECT_EQ(held, direct_record::failures_max);
  EXPECT_LE(failures, 2 * direct_record::failures_max);
}

TEST(DirectRecord, WhatAnEarlierProcessTellsLateDoesNotCount) {
  direct_record record;
  record.begin(3);
  EXPECT_EQ(record.failed(3), 1u);
  record.begin(4);
  EXPECT_EQ(record.failed(3), 0u);
  record.lost(3);
  EXPECT_EQ(record.losses(), 0u);
  EXPECT_EQ(record.failed(4), 1u);
  read(record, 3, direct_record::reads_per_failure);
  EXPECT_EQ(record.failed(4), 2u);
}

TEST(DirectRecord, EachProcessIsLostOnce) {
  direct_record record;
  record.begin(1);
  record.lost(1);
  record.lost(1);
  EXPECT_EQ(record.losses(), 1u);
  EXPECT_FALSE(record.given_up());
  record.begin(2); // this process reads well
  record.begin(3);
  record.lost(3);
  EXPECT_EQ(record.losses(), 2u);
  EXPECT_TRUE(record.given_up());
}

TEST(DirectRecord, ManyReadsClearALoss) {
  direct_record record;
  record.begin(1);
  record.lost(1);
  record.begin(2);
  read(record, 2, direct_record::reads_per_loss - 1);
  EXPECT_EQ(record.losses(), 1u);
  record.lost(2);
  EXPECT_TRUE(record.given_up());
  direct_record other;
  other.begin(1);
  other.lost(1);
  other.begin(2);
  read(other, 2, direct_record::reads_per_loss);
  EXPECT_EQ(other.losses(), 0u);
  other.lost(2);
  EXPECT_FALSE(other.given_up());
}

TEST(DirectRecords, WhatIsHeldAgainstADeviceOutlivesIt) {
  direct_records all;
  auto record = all.of("GPU-1");
  EXPECT_EQ(all.of("GPU-1"), record);
  EXPECT_NE(all.of("GPU-2"), record) << "each has its own";
  record->begin(1);
  record->lost(1);
  all.leave("GPU-1");
  all.leave("GPU-2");
  all.leave("GPU-3"); // nobody has heard of this device
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(all.of("GPU-1")->losses(), 1u);
}

} // namespace
} // namespace terrace::gpu
