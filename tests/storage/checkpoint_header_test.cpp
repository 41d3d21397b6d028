#include "storage/volume_layout.hpp"

#include "bytes.hpp"

#include <gtest/gtest.h>

#include <array>

namespace terrace {
namespace {

using bytes_4k = std::array<std::byte, checkpoint_header_bytes>;

constexpr volume_id own{{1, 2, 3}};
const checkpoint_header sample{own, 5, 0x1234, 0x20, 0x3e8};

bytes_4k encoded(const checkpoint_header& header) {
  bytes_4k bytes;
  encode(header, bytes);
  return bytes;
}

TEST(CheckpointHeader, ComesBackAsItWasWritten) {
  EXPECT_EQ(decode_checkpoint_header(own, encoded(sample)), sample);
}

// Disks contain these bytes: if this test fails, change the version, not the test.
TEST(CheckpointHeader, HasItsGoldenBytes) {
  auto bytes = encoded(sample);
  EXPECT_EQ(hex_of(bytes, 0, 32), "5445525243484b50"
                                  "01000000"
                                  "00000000"
                                  "01020300000000000000000000000000");
  EXPECT_EQ(hex_of(bytes, 32, 32), "0500000000000000"
                                   "3412000000000000"
                                   "2000000000000000"
                                   "e803000000000000");
  EXPECT_EQ(hex_of(bytes, 64, 8), "4863665e0dd46979");
}

TEST(CheckpointHeader, WhatIsNoneOfThisStoreIsRefused) {
  EXPECT_EQ(decode_checkpoint_header(own, bytes_4k{}).error().code, errc::not_found);
  EXPECT_EQ(decode_checkpoint_header({{4}}, encoded(sample)).error().code, errc::gone);
  auto damaged = encoded(sample);
  damaged[33] = std::byte{1};
  EXPECT_EQ(decode_checkpoint_header(own, damaged).error().code, errc::internal);
}

} // namespace
} // namespace terrace
