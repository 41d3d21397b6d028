// Values of a remote store: whatever is not exactly the expected object is refused, with its reason.
#include "remote/value_header.hpp"

#include "index/payload_checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace terrace::remote {
namespace value_header_test {

using header_block = std::array<std::byte, value_header_bytes>;

remote_identity identity() {
  remote_identity is{.epoch = 0x1122334455667788, .pool = 3, .rank = 0x0102};
  for (size_t i = 0; i < 16; ++i)
    is.space[i] = static_cast<uint8_t>(0x50 + i);
  for (size_t i = 0; i < 32; ++i)
    is.chunk.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  return is;
}

/// An object as it comes out of a store.
struct stored_object {
  std::vector<std::byte> headers;
  std::vector<std::byte> payload;

  std::span<const std::byte> bytes(size_t part) const {
    return std::span(payload).subspan(part * part_bytes, bytes_of_part(payload.size(), part));
  }
  std::span<std::byte, value_header_bytes> header(size_t part) {
    return std::span(headers).subspan(part * value_header_bytes).first<value_header_bytes>();
  }
};

value_header header_of(const stored_object& object, uint32_t part, uint64_t generation = 99) {
  return {.identity = identity(),
          .generation = generation,
          .payload_bytes = object.payload.size(),
          .part = part,
          .checksum = payload_checksum(object.bytes(part))};
}

/// Verifies all parts, as a reader does.
std::optional<rejected_value> verify(stored_object& object, const remote_identity& expected) {
  expected_part one{.identity = expected, .payload_bytes = object.payload.size()};
  for (; one.part < parts_of(object.payload.size()); ++one.part) {
    auto verified = verify(object.header(one.part), object.bytes(one.part), one);
    if (!verified)
      return verified.error();
    one.generation = *verified;
  }
  return std::nullopt;
}

stored_object object_of(size_t bytes) {
  stored_object made;
  made.payload.resize(bytes);
  for (size_t i = 0; i < bytes; ++i)
    made.payload[i] = static_cast<std::byte>(i * 7 + i / 251);
  made.headers.resize(parts_of(bytes) * value_header_bytes);
  for (uint32_t part = 0; part < parts_of(bytes); ++part)
    encode(header_of(made, part), made.header(part));
  return made;
}

constexpr size_t three_parts = 2 * part_bytes + 5;

TEST(ValueHeader, ComesBackAsItWasWritten) {
  auto object = object_of(three_parts);
  EXPECT_EQ(decode_value_header(object.header(2)).value(), header_of(object, 2));
}

// Other daemons read these bytes: if this test fails, change the version, not the test.
TEST(ValueHeader, HasItsGoldenBytes) {
  header_block bytes;
  encode({.identity = identity(),
          .generation = 7,
          .payload_bytes = 3'000'000,
          .part = 2,
          .checksum = 0xdeadbeef},
         bytes);
  auto hex = [&bytes](size_t from, size_t count) {
    return to_hex(std::span(reinterpret_cast<const uint8_t*>(bytes.data()) + from, count));
  };
  EXPECT_EQ(hex(0, 16), "54455252524d5400"
                        "01000000"
                        "0300"
                        "0201");
  EXPECT_EQ(hex(16, 16), "505152535455565758595a5b5c5d5e5f");
  EXPECT_EQ(hex(32, 32), "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf");
  EXPECT_EQ(hex(64, 8), "2000000000000000");
  EXPECT_EQ(hex(72, 16), "8877665544332211"
                         "0700000000000000");
  EXPECT_EQ(hex(88, 16), "c0c62d0000000000"
                         "0200000000000000");
  EXPECT_EQ(hex(104, 8), "efbeadde00000000");
  EXPECT_EQ(hex(112, 8), "9de8f3760c6352a0");
  EXPECT_TRUE(std::all_of(bytes.begin() + 120, bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(ValueHeader, PartsCoverThePayload) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, part_bytes, part_bytes + 1, uint64_t{three_parts}}) {
    uint64_t covered = 0;
    for (uint64_t part = 0; part < parts_of(bytes); ++part)
      covered += bytes_of_part(bytes, part);
    EXPECT_EQ(covered, bytes);
    EXPECT_EQ(bytes_of_part(bytes, parts_of(bytes)), 0u);
  }
  EXPECT_EQ(parts_of(bulk_part_bytes, bulk_part_bytes), 1u);
  EXPECT_EQ(bytes_of_part(bulk_part_bytes + 5, 1, bulk_part_bytes), 5u);
  EXPECT_EQ(parts_of(0), 1u);
  EXPECT_EQ(parts_of(part_bytes), 1u);
  EXPECT_EQ(parts_of(part_bytes + 1), 2u);
}

TEST(ValueHeader, EveryFlippedBitIsFound) {
  auto object = object_of(100);
  for (size_t i = 0; i < value_header_bytes; ++i) {
    header_block bad;
    std::copy_n(object.headers.begin(), bad.size(), bad.begin());
    bad[i] ^= std::byte(1u << (i % 8));
    auto found = decode_value_header(bad);
    ASSERT_FALSE(found) << "byte " << i;
    auto expected = i < 8    ? value_fault::not_ours
                    : i < 12 ? value_fault::other_version
                             : value_fault::damaged;
    EXPECT_EQ(found.error().fault, expected) << "byte " << i;
    EXPECT_NE(found.error().text.find("expected"), std::string::npos) << found.error().text;
  }
}

TEST(ValueHeader, FieldsThatContradictEachOtherAreDamage) {
  auto object = object_of(100);
  struct {
    size_t offset;
    uint8_t value;
  } cases[] = {{64, 7}, {64, 33}, {96, 1}}; // a digest too short, too long, and a part that the payload lacks
  for (auto& c : cases) {
    header_block bad;
    std::copy_n(object.headers.begin(), bad.size(), bad.begin());
    bad[c.offset] = std::byte{c.value};
    std::fill_n(bad.begin() + 112, 8, std::byte{0});
    uint64_t sum = payload_checksum(bad);
    std::memcpy(bad.data() + 112, &sum, sizeof sum);
    auto found = decode_value_header(bad);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().fault, value_fault::damaged);
    EXPECT_NE(found.error().text.find("contradicts"), std::string::npos) << found.error().text;
  }
}

TEST(VerifyValue, TheExpectedObjectPasses) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{part_bytes}, three_parts}) {
    auto object = object_of(bytes);
    EXPECT_FALSE(verify(object, identity())) << bytes;
  }
}

std::optional<value_fault> fault_of(stored_object& object, const remote_identity& expected = identity()) {
  auto rejected = verify(object, expected);
  if (!rejected)
    return std::nullopt;
  EXPECT_NE(rejected->text.find("expected"), std::string::npos) << rejected->text;
  return rejected->fault;
}

TEST(VerifyValue, NamesTheFieldThatTellsAnotherObject) {
  struct {
    const char* field;
    void (*change)(remote_identity&);
  } cases[] = {
      {"space", [](remote_identity& id) { id.space[15] ^= 1; }},
      {"epoch", [](remote_identity& id) { ++id.epoch; }},
      {"pool", [](remote_identity& id) { ++id.pool; }},
      {"rank", [](remote_identity& id) { ++id.rank; }},
      {"chunk", [](remote_identity& id) { id.chunk.bytes[0] ^= 1; }},
      {"chunk", [](remote_identity& id) { id.digest_width = 16; }},
  };
  auto object = object_of(100);
  for (auto& c : cases) {
    auto expected = identity();
    c.change(expected);
    auto rejected = verify(object, expected);
    ASSERT_TRUE(rejected) << c.field;
    EXPECT_EQ(rejected->fault, value_fault::other_object);
    EXPECT_EQ(rejected->text.rfind(c.field, 0), 0u) << rejected->text;
  }
}

TEST(VerifyValue, EveryFlippedByteOfThePayloadIsFound) {
  auto object = object_of(300);
  for (std::byte& byte : object.payload) {
    byte ^= std::byte{0x10};
    EXPECT_EQ(fault_of(object), value_fault::wrong_payload);
    byte ^= std::byte{0x10};
  }
}

TEST(VerifyValue, AnotherLengthIsFound) {
  auto object = object_of(100);
  auto longer = header_of(object, 0);
  ++longer.payload_bytes;
  encode(longer, object.header(0));
  EXPECT_EQ(fault_of(object), value_fault::other_length);
}

TEST(VerifyValue, PartsInAnotherOrderAreFound) {
  auto object = object_of(three_parts);
  std::copy_n(object.header(2).begin(), value_header_bytes, object.header(1).begin());
  EXPECT_EQ(fault_of(object), value_fault::other_part);
}

TEST(VerifyValue, PartsOfTwoWritersAreFound) {
  auto object = object_of(three_parts);
  encode(header_of(object, 1, 100), object.header(1)); // the same bytes, written by another daemon
  EXPECT_EQ(fault_of(object), value_fault::other_part);
}

TEST(VerifyValue, ADamagedHeaderOfALaterPartIsFound) {
  auto object = object_of(three_parts);
  object.header(2)[20] ^= std::byte{1};
  EXPECT_EQ(fault_of(object), value_fault::damaged);
  object.header(2)[0] ^= std::byte{1};
  EXPECT_EQ(fault_of(object), value_fault::not_ours);
}

TEST(VerifyValue, EveryFaultHasItsOwnName) {
  std::vector<std::string> names;
  for (size_t i = 0; i < value_faults; ++i)
    names.emplace_back(to_string(static_cast<value_fault>(i)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

} // namespace value_header_test
} // namespace terrace::remote
