#include "index/object_header.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace terrace {
namespace object_header_test {

using bytes_4k = std::array<std::byte, object_header_bytes>;

object_header sample() {
  object_header header;
  for (size_t i = 0; i < 32; ++i) {
    header.identity.space[i] = static_cast<uint8_t>(i);
    header.identity.chunk.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  }
  for (size_t i = 0; i < 16; ++i)
    header.identity.volume.bytes[i] = static_cast<uint8_t>(0x50 + i);
  header.identity.pool = 3;
  header.identity.rank = 0x0102;
  header.identity.generation = 0x1122334455667788;
  header.identity.epoch = 7;
  header.payload_bytes = 1'000'000;
  header.physical_bytes = physical_bytes_for(1'000'000);
  header.payload_checksum = 0xdeadbeefcafef00d;
  return header;
}

bytes_4k encoded(const object_header& header) {
  bytes_4k bytes;
  encode(header, bytes);
  return bytes;
}

std::string hex(const bytes_4k& bytes, size_t from, size_t count) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = from; i < from + count; ++i) {
    text.push_back(digits[std::to_integer<unsigned>(bytes[i]) >> 4]);
    text.push_back(digits[std::to_integer<unsigned>(bytes[i]) & 15]);
  }
  return text;
}

TEST(ObjectHeader, ComesBackAsItWasWritten) { EXPECT_EQ(decode(encoded(sample())), sample()); }

TEST(ObjectHeader, PhysicalSizeIsHeaderAndWholeBlocks) {
  EXPECT_EQ(physical_bytes_for(0), 4096u);
  EXPECT_EQ(physical_bytes_for(1), 8192u);
  EXPECT_EQ(physical_bytes_for(4096), 8192u);
  EXPECT_EQ(physical_bytes_for(4097), 12288u);
}

// Disks contain these bytes: if this test fails, change the version, not the test.
TEST(ObjectHeader, HasItsGoldenBytes) {
  auto bytes = encoded(sample());
  EXPECT_EQ(hex(bytes, 0, 16), "544552524f424a00"
                               "01000000"
                               "0300"
                               "0201");
  EXPECT_EQ(hex(bytes, 16, 32), "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(hex(bytes, 48, 32), "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf");
  EXPECT_EQ(hex(bytes, 80, 8), "2000000000000000");
  EXPECT_EQ(hex(bytes, 88, 16), "8877665544332211"
                                "0700000000000000");
  EXPECT_EQ(hex(bytes, 104, 16), "505152535455565758595a5b5c5d5e5f");
  EXPECT_EQ(hex(bytes, 120, 24), "40420f0000000000"
                                 "00600f0000000000"
                                 "0df0fecaefbeadde");
  EXPECT_EQ(hex(bytes, 144, 8), "bc62e2a6c487e7ac");
  EXPECT_TRUE(std::all_of(bytes.begin() + 152, bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(ObjectHeader, AnUnwrittenExtentHasNone) {
  bytes_4k zeros{};
  EXPECT_EQ(decode(zeros).error().code, errc::not_found);
}

TEST(ObjectHeader, AnotherVersionIsNotMisread) {
  auto bytes = encoded(sample());
  bytes[8] = std::byte{2};
  auto header = decode(bytes);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, errc::unsupported);
  EXPECT_NE(header.error().text.find("2 found"), std::string::npos) << header.error().text;
}

TEST(ObjectHeader, EveryFlippedBitIsFound) {
  const auto good = encoded(sample());
  for (size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= std::byte(1u << (i % 8));
    auto header = decode(bad);
    ASSERT_FALSE(header) << "byte " << i;
    errc wanted = i < 8 ? errc::not_found : i < 12 ? errc::unsupported : errc::internal;
    EXPECT_EQ(header.error().code, wanted) << "byte " << i;
  }
}

TEST(ObjectHeader, MatchesItsOwnIdentity) { EXPECT_TRUE(matches(sample(), sample().identity)); }

TEST(ObjectHeader, NamesTheFieldThatTellsAnotherObject) {
  struct {
    const char* field;
    void (*change)(object_identity&);
  } cases[] = {
      {"volume", [](object_identity& id) { id.volume.bytes[15] ^= 1; }},
      {"epoch", [](object_identity& id) { ++id.epoch; }},
      {"space", [](object_identity& id) { id.space[31] ^= 1; }},
      {"pool", [](object_identity& id) { ++id.pool; }},
      {"rank", [](object_identity& id) { ++id.rank; }},
      {"chunk", [](object_identity& id) { id.chunk.bytes[0] ^= 1; }},
      {"chunk", [](object_identity& id) { id.digest_width = 16; }},
      {"generation", [](object_identity& id) { ++id.generation; }},
  };
  for (auto& c : cases) {
    auto expected = sample().identity;
    c.change(expected);
    auto same = matches(sample(), expected);
    ASSERT_FALSE(same) << c.field;
    EXPECT_EQ(same.error().code, errc::gone);
    EXPECT_NE(same.error().text.find(c.field), std::string::npos) << same.error().text;
  }
}

} // namespace object_header_test
} // namespace terrace
