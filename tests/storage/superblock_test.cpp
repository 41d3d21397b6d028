#include "storage/superblock.hpp"

#include "base/digest.hpp"

#include <gtest/gtest.h>

#include <array>

namespace terrace {
namespace {

using bytes_4k = std::array<std::byte, superblock_bytes>;

superblock sample() {
  superblock block{.epoch = 9, .capacity_bytes = 1ULL << 30};
  for (size_t i = 0; i < 16; ++i) {
    block.store.bytes[i] = static_cast<uint8_t>(i);
    block.boot.bytes[i] = static_cast<uint8_t>(0x80 + i);
  }
  return block;
}

bytes_4k encoded(const superblock& block) {
  bytes_4k bytes;
  encode(block, bytes);
  return bytes;
}

std::string hex(const bytes_4k& bytes, size_t from, size_t count) {
  auto* raw = reinterpret_cast<const uint8_t*>(bytes.data()) + from;
  return to_hex(digest::from({raw, count}), count);
}

TEST(Superblock, ComesBackAsItWasWritten) { EXPECT_EQ(decode_superblock(encoded(sample())), sample()); }

// These bytes are on disks: if this test fails, the version must change, not the test.
TEST(Superblock, HasItsGoldenBytes) {
  auto bytes = encoded(sample());
  EXPECT_EQ(hex(bytes, 0, 16), "5445525253544f52"
                               "01000000"
                               "00000000");
  EXPECT_EQ(hex(bytes, 16, 32), "000102030405060708090a0b0c0d0e0f808182838485868788898a8b8c8d8e8f");
  EXPECT_EQ(hex(bytes, 48, 16), "0900000000000000"
                                "0000004000000000");
  EXPECT_EQ(hex(bytes, 64, 8), "8b521797898f8523");
}

TEST(Superblock, ZerosAreAStoreThatWasNeverFinished) {
  EXPECT_EQ(decode_superblock(bytes_4k{}).error().code, errc::not_found);
}

TEST(Superblock, OtherBytesAreNotOurs) {
  auto bytes = encoded(sample());
  bytes[0] = std::byte{'X'};
  EXPECT_EQ(decode_superblock(bytes).error().code, errc::denied);
}

TEST(Superblock, AnotherVersionAndDamageAreToldApart) {
  auto version = encoded(sample());
  version[8] = std::byte{2};
  EXPECT_EQ(decode_superblock(version).error().code, errc::unsupported);
  auto damaged = encoded(sample());
  damaged[4000] = std::byte{1};
  EXPECT_EQ(decode_superblock(damaged).error().code, errc::internal);
}

} // namespace
} // namespace terrace
