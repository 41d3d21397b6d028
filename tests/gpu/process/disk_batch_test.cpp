#include "gpu/process/direct_record.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace::gpu {
namespace {

TEST(DiskBatch, HasWholeObjectsUpToItsBytes) {
  const std::vector<uint64_t> objects{4, 4, 4, 9, 1, 1};
  EXPECT_EQ(disk_batch_end(objects, 0, 8), 2u);
  EXPECT_EQ(disk_batch_end(objects, 0, 11), 2u);
  EXPECT_EQ(disk_batch_end(objects, 0, 12), 3u);
  EXPECT_EQ(disk_batch_end(objects, 3, 8), 4u) << "a larger object is a batch";
  EXPECT_EQ(disk_batch_end(objects, 4, 8), 6u);
  EXPECT_EQ(disk_batch_end(objects, 6, 8), 6u);
}

TEST(DiskBatch, HasNoMoreObjectsThanAMessage) {
  const std::vector<uint64_t> objects(200, 1);
  EXPECT_EQ(disk_batch_end(objects, 0, 1000), disk_reader::extents_max);
  EXPECT_EQ(disk_batch_end(objects, 150, 1000), 200u);
}

TEST(DiskBatch, RequestsAreReadInSeveral) {
  constexpr uint64_t mib = 1 << 20;
  EXPECT_EQ(disk_batch_bytes(1 * mib, 40 * mib), 8 * mib);
  EXPECT_EQ(disk_batch_bytes(256 * mib, 40 * mib), 32 * mib);
  EXPECT_EQ(disk_batch_bytes(4096 * mib, 40 * mib), 40 * mib);
  EXPECT_EQ(disk_batch_bytes(4096 * mib, mib), mib);
}

} // namespace
} // namespace terrace::gpu
