#include "index/index_record.hpp"

#include "tests/storage/bytes.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using bytes_96 = std::array<std::byte, index_record_bytes>;

index_record sample() {
  index_record record;
  record.pool = 3;
  record.rank = 0x0102;
  record.space = 0x11223344;
  record.payload_bytes = 1'000'000;
  for (size_t i = 0; i < 32; ++i) {
    record.chunk.bytes[i] = static_cast<uint8_t>(0xa0 + i);
    record.parent.bytes[i] = static_cast<uint8_t>(0x20 + i);
  }
  record.generation = first_generation(7) + 0x41;
  record.offset = 0x123000;
  record.physical_bytes = physical_bytes_for(1'000'000);
  return record;
}

bytes_96 encoded(const index_record& record) {
  bytes_96 bytes;
  encode(record, bytes);
  return bytes;
}

TEST(IndexRecord, ComesBackAsItWasWritten) {
  EXPECT_EQ(decode_record(encoded(sample())), sample());
  auto removal = removal_of(sample());
  EXPECT_EQ(decode_record(encoded(removal)), removal);
  auto space = space_record(5, {1, 2, 3});
  EXPECT_EQ(decode_record(encoded(space)), space);
}

// Disks contain these bytes: if this test fails, change the version, not the test.
TEST(IndexRecord, HasItsGoldenBytes) {
  auto bytes = encoded(sample());
  EXPECT_EQ(hex_of(bytes, 0, 16), "01"
                                  "20"
                                  "0300"
                                  "0201"
                                  "0000"
                                  "44332211"
                                  "40420f00");
  EXPECT_EQ(hex_of(bytes, 16, 32), "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf");
  EXPECT_EQ(hex_of(bytes, 48, 32), "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f");
  EXPECT_EQ(hex_of(bytes, 80, 16), "4200000000070000"
                                   "f600002301000000");
  EXPECT_EQ(hex_of(encoded(space_record(5, {1, 2, 3})), 0, 20), "03200000"
                                                                "00000000"
                                                                "05000000"
                                                                "00000000"
                                                                "01020300");
}

TEST(IndexRecord, AnObjectOfATrailingPoolIsKnownByABit) {
  auto record = sample();
  record.trailing = true;
  EXPECT_EQ(decode_record(encoded(record)), record);
  EXPECT_EQ(hex_of(encoded(record), 4, 4), "02010100");
}

TEST(IndexRecord, PlacesUpTo4PebibytesKeepTheirBytes) {
  auto record = sample();
  record.offset = (1ULL << 52) - disk_alignment_bytes;
  record.physical_bytes = 1ULL << 30;
  EXPECT_EQ(decode_record(encoded(record)), record);
}

TEST(IndexRecord, EpochsAreThePrefixOfGenerations) {
  EXPECT_EQ(epoch_of(first_generation(7)), 7u);
  EXPECT_LT(first_generation(7) + 1'000'000'000'000, first_generation(8));
  EXPECT_EQ(epoch_of(first_generation(epoch_max)), epoch_max);
}

TEST(IndexRecord, FieldsThatContradictEachOtherAreNoRecord) {
  auto with = [](size_t at, uint8_t value) {
    auto bytes = encoded(sample());
    bytes[at] = std::byte{value};
    return decode_record(bytes);
  };
  EXPECT_TRUE(with(2, 9)); // another pool is another object, not damage
  EXPECT_FALSE(with(0, 0)) << "unknown kind";
  EXPECT_FALSE(with(0, 4)) << "unknown kind";
  EXPECT_FALSE(with(1, 7)) << "digest too short";
  EXPECT_FALSE(with(1, 33)) << "digest too long";
  EXPECT_FALSE(with(14, 0xff)) << "payload larger than its extent";
  auto bytes = encoded(sample());
  std::fill(bytes.begin() + 80, bytes.begin() + 88, std::byte{0});
  EXPECT_FALSE(decode_record(bytes)) << "no generation";
  EXPECT_FALSE(decode_record(bytes_96{}));
}

} // namespace
} // namespace terrace
