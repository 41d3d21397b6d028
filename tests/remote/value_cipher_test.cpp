// Encrypted values of a remote store: they come back, they tell nothing, and whatever was changed or moved is refused with its reason.
#include "remote/value_cipher.hpp"

#include "index/payload_checksum.hpp"
#include "index/sha256.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace terrace::remote {
namespace value_cipher_test {

using header_block = std::array<std::byte, value_header_bytes>;

constexpr size_t piece = 256 << 10;
constexpr size_t three_parts = 2 * part_bytes + 5;

value_cipher::writer_number writer_of(uint8_t seed) {
  value_cipher::writer_number writer;
  writer.fill(seed);
  return writer;
}

std::vector<uint8_t> cipher_key(char seed = 'k') {
  const std::string key(32, seed);
  const auto made = realm::make("", {reinterpret_cast<const uint8_t*>(key.data()), key.size()}, true);
  return {made->cipher_key().begin(), made->cipher_key().end()};
}

remote_identity identity() {
  remote_identity is{.epoch = 0x1122334455667788, .pool = 3, .rank = 0x0102, .digest_width = 16};
  for (size_t i = 0; i < 16; ++i) {
    is.space[i] = static_cast<uint8_t>(0x50 + i);
    is.chunk.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  }
  return is;
}

std::vector<std::byte> payload_of(size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<std::byte>(i * 7 + i / 251);
  return made;
}

/// One value as it lies in a store.
struct stored_value {
  header_block header;
  std::vector<std::byte> bytes;
};

struct written {
  remote_identity identity = value_cipher_test::identity();
  uint64_t generation = 99;
  uint32_t part = 0;
};

stored_value seal(value_cipher& by, const std::vector<std::byte>& payload, const written& as = {},
                  size_t at_a_time = piece) {
  const auto from = std::span(payload).subspan(as.part * part_bytes, bytes_of_part(payload.size(), as.part));
  stored_value made{.header = {}, .bytes = std::vector<std::byte>(from.size())};
  value_sealing sealing(by,
                        {.identity = as.identity,
                         .generation = as.generation,
                         .payload_bytes = payload.size(),
                         .part = as.part},
                        from, made.bytes, made.header);
  EXPECT_FALSE(sealing.done());
  while (!sealing.done())
    EXPECT_LE(sealing.advance(at_a_time), at_a_time);
  return made;
}

expected_part expected(size_t payload_bytes, uint32_t part = 0) {
  return {.identity = identity(), .payload_bytes = payload_bytes, .part = part, .encrypted = true};
}

/// The value is decrypted in place.
tl::expected<uint64_t, rejected_value> open(value_cipher& by, stored_value& value, const expected_part& as,
                                            size_t at_a_time = piece) {
  value_opening opening(by, value.header, value.bytes, as);
  while (!opening.done())
    EXPECT_LE(opening.advance(at_a_time), at_a_time);
  EXPECT_EQ(opening.advance(1), 0U);
  return opening.verified();
}

std::optional<value_fault> fault_of(value_cipher& by, stored_value value, const expected_part& as) {
  auto opened = open(by, value, as);
  if (opened)
    return std::nullopt;
  EXPECT_NE(opened.error().text.find("expected"), std::string::npos) << opened.error().text;
  return opened.error().fault;
}

/// Makes the header's checksum right again, as somebody does who forges a value.
void forge_checksum(header_block& header) {
  std::fill_n(header.begin() + 112, 8, std::byte{0});
  const uint64_t sum = payload_checksum(header);
  std::memcpy(header.data() + 112, &sum, sizeof sum);
}

class ValueCipher : public ::testing::Test {
 protected:
  static std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }

  value_cipher writer{cipher_key(), writer_of(1)}, reader{cipher_key(), writer_of(2)};
};

// RFC 5869, test cases 1 and 3: the first 32 bytes.
TEST_F(ValueCipher, ItsKeysAreDerivedAsPublished) {
  const std::vector<uint8_t> key(22, 0x0b);
  std::vector<uint8_t> salt;
  std::string info;
  for (uint8_t i = 0; i <= 0x0c; ++i)
    salt.push_back(i);
  for (int i = 0xf0; i <= 0xf9; ++i)
    info.push_back(static_cast<char>(i));
  EXPECT_EQ(to_hex(hkdf_sha256(key, salt, info)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
  EXPECT_EQ(to_hex(hkdf_sha256(key, {}, "")),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
}

// Other daemons read these bytes: if this test fails, change the version, not the test. They were computed by another
// implementation of AES-GCM, HKDF and AES-CBC.
TEST_F(ValueCipher, HasItsGoldenBytes) {
  auto hex = [](std::span<const std::byte> bytes) {
    return to_hex(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  };
  const auto value = seal(writer, payload_of(20));
  EXPECT_EQ(hex(std::span(value.header).subspan(8, 4)), "02000000");
  EXPECT_EQ(hex(std::span(value.header).subspan(104, 8)), "0000000000000000") << "no checksum of the payload";
  EXPECT_EQ(hex(std::span(value.header).subspan(120, 32)),
            std::string(64, '0').replace(0, 64, to_hex(writer_of(1))));
  EXPECT_EQ(hex(std::span(value.header).subspan(152, 16)), "00000000"
                                                           "0100000000000000"
                                                           "00000000");
  EXPECT_EQ(hex(std::span(value.header).subspan(168, 16)), "9426632f8bbeb1830c0e14098f9b7c02");
  EXPECT_EQ(hex(value.bytes), "1cf58d72a882c031ed50746248c71f595ebb5a32");
  digest chunk;
  chunk.bytes.fill(0xab);
  EXPECT_EQ(to_hex(writer.name_of(chunk), value_cipher::name_bytes), "d576fe8a0806e548dd29cb1d44fbdc8d");
}

TEST_F(ValueCipher, AnotherDaemonOfTheRealmReadsWhatOneHasWritten) {
  for (size_t bytes :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{4097}, piece + 1, size_t{part_bytes}}) {
    const auto payload = payload_of(bytes);
    auto value = seal(writer, payload);
    auto opened = open(reader, value, expected(bytes));
    ASSERT_TRUE(opened) << bytes << ": " << opened.error().text;
    EXPECT_EQ(*opened, 99U);
    EXPECT_TRUE(value.bytes == payload) << bytes;
  }
}

TEST_F(ValueCipher, ThePartsOfAnObjectAreValuesOfTheirOwn) {
  const auto payload = payload_of(three_parts);
  for (uint32_t part = 0; part < 3; ++part) {
    auto value = seal(writer, payload, {.part = part});
    auto as = expected(payload.size(), part);
    as.generation = 99;
    ASSERT_TRUE(open(reader, value, as)) << part;
    EXPECT_TRUE(
        std::ranges::equal(value.bytes, std::span(payload).subspan(part * part_bytes, value.bytes.size())));
  }
}

TEST_F(ValueCipher, ThePiecesMakeNoDifference) {
  const auto payload = payload_of(10'000);
  for (size_t at_a_time : {size_t{1}, size_t{16}, size_t{333}, size_t{1} << 20}) {
    value_cipher again(cipher_key(), writer_of(1)); // which begins to count anew
    auto value = seal(again, payload, {}, at_a_time);
    value_cipher once(cipher_key(), writer_of(1));
    auto whole = seal(once, payload);
    EXPECT_TRUE(value.header == whole.header && value.bytes == whole.bytes) << at_a_time;
    EXPECT_TRUE(open(reader, value, expected(payload.size()), at_a_time));
    EXPECT_TRUE(value.bytes == payload);
  }
}

TEST_F(ValueCipher, ValuesThatCrossAtTheSameTimeDoNotDisturbEachOther) {
  const auto one = payload_of(1'000), other = payload_of(900);
  stored_value a{.header = {}, .bytes = std::vector<std::byte>(1'000)},
      b{.header = {}, .bytes = std::vector<std::byte>(900)};
  auto object = identity();
  object.chunk.bytes[0] ^= 1;
  value_sealing first(writer, {.identity = identity(), .generation = 1, .payload_bytes = 1'000}, one, a.bytes,
                      a.header);
  value_sealing second(writer, {.identity = object, .generation = 2, .payload_bytes = 900}, other, b.bytes,
                       b.header);
  while (!first.done() || !second.done()) {
    first.advance(7);
    second.advance(11);
  }
  EXPECT_EQ(open(reader, a, expected(1'000)).value(), 1U);
  EXPECT_EQ(open(reader, b, {.identity = object, .payload_bytes = 900, .encrypted = true}).value(), 2U);
  EXPECT_TRUE(a.bytes == one && b.bytes == other);
}

TEST_F(ValueCipher, NoNonceRepeatsUnderAKey) {
  std::set<std::string> seen;
  for (uint8_t run = 1; run <= 3; ++run) {
    value_cipher of_run(cipher_key(), writer_of(run));
    for (int i = 0; i < 100; ++i) {
      auto value = seal(of_run, payload_of(1));
      seen.insert(
          std::string(reinterpret_cast<const char*>(value.header.data()) + 120, 44)); // writer and nonce
    }
  }
  EXPECT_EQ(seen.size(), 300U);
}

TEST_F(ValueCipher, EqualPayloadsHaveNothingInCommon) {
  const auto payload = std::vector<std::byte>(64);
  auto once = seal(writer, payload), again = seal(writer, payload);
  EXPECT_FALSE(once.bytes == again.bytes);
  EXPECT_TRUE(std::ranges::search(once.bytes, std::span(payload).first(8)).empty());
}

TEST_F(ValueCipher, NamesTellNoDigestAndAreTheRealmsOwn) {
  digest one, other;
  one.bytes.fill(0xab);
  other = one;
  other.bytes[31] ^= 1;
  value_cipher foreign(cipher_key('o'), writer_of(1));
  EXPECT_EQ(writer.name_of(one), reader.name_of(one)) << "whatever the run";
  EXPECT_NE(writer.name_of(one), writer.name_of(other));
  EXPECT_NE(writer.name_of(one), foreign.name_of(one));
  EXPECT_NE(writer.name_of(one), one);
  const digest name = writer.name_of(one);
  EXPECT_TRUE(std::all_of(name.bytes.begin() + value_cipher::name_bytes, name.bytes.end(),
                          [](uint8_t byte) { return byte == 0; }));
}

TEST_F(ValueCipher, ReadsManyWritersAndEpochsInTurns) {
  for (uint64_t epoch = 1; epoch <= 2 * value_cipher::keys_max; ++epoch) {
    auto object = identity();
    object.epoch = epoch % (value_cipher::keys_max + 7) + 1;
    auto value = seal(writer, payload_of(10), {.identity = object});
    EXPECT_TRUE(open(reader, value, {.identity = object, .payload_bytes = 10, .encrypted = true})) << epoch;
  }
}

// ---- what was changed ----

TEST_F(ValueCipher, EveryFlippedBitOfTheHeaderIsFound) {
  const auto value = seal(writer, payload_of(100));
  for (size_t bit = 0; bit < 8 * value_header_bytes; ++bit) {
    auto bad = value;
    bad.header[bit / 8] ^= std::byte(1U << (bit % 8));
    const auto fault = fault_of(reader, bad, expected(100));
    const bool is_known = bit == 64; // 3, the version of a compressed value
    EXPECT_EQ(fault, bit / 8 < 8                 ? value_fault::not_ours
                     : bit / 8 < 12 && !is_known ? value_fault::other_version
                                                 : value_fault::damaged)
        << bit;
  }
}

TEST_F(ValueCipher, AHeaderWhoseChecksumWasForgedIsFound) {
  const auto value = seal(writer, payload_of(100));
  for (size_t byte = 12; byte < value_header_bytes; ++byte) {
    if (byte >= 112 && byte < 120)
      continue; // the checksum itself
    auto bad = value;
    bad.header[byte] ^= std::byte{1};
    forge_checksum(bad.header);
    auto fault = fault_of(reader, bad, expected(100));
    ASSERT_TRUE(fault) << "byte " << byte;
    const bool authentic_only = (byte >= 65 && byte < 72) || (byte >= 80 && byte < 88) || byte >= 100;
    EXPECT_EQ(*fault == value_fault::not_authentic, authentic_only) << "byte " << byte << to_string(*fault);
  }
}

TEST_F(ValueCipher, EveryFlippedBitOfThePayloadIsFound) {
  const auto value = seal(writer, payload_of(33));
  for (size_t bit = 0; bit < 8 * value.bytes.size(); ++bit) {
    auto bad = value;
    bad.bytes[bit / 8] ^= std::byte(1U << (bit % 8));
    EXPECT_EQ(fault_of(reader, bad, expected(33)), value_fault::not_authentic) << bit;
  }
}

TEST_F(ValueCipher, TheLastByteOfALargePayloadCounts) {
  auto bad = seal(writer, payload_of(part_bytes));
  bad.bytes.back() ^= std::byte{0x80};
  EXPECT_EQ(fault_of(reader, bad, expected(part_bytes)), value_fault::not_authentic);
}

TEST_F(ValueCipher, AValueThatWasCutOrExtendedIsFoundEvenIfItsHeaderSaysSo) {
  for (size_t bytes : {size_t{0}, size_t{99}, size_t{101}, size_t{116}}) {
    auto bad = seal(writer, payload_of(100));
    bad.bytes.resize(bytes);
    EXPECT_EQ(fault_of(reader, bad, expected(bytes)), value_fault::other_length) << bytes;
    const uint64_t said = bytes;
    std::memcpy(bad.header.data() + 88, &said, sizeof said);
    forge_checksum(bad.header);
    EXPECT_EQ(fault_of(reader, bad, expected(bytes)), value_fault::not_authentic) << bytes;
  }
}

TEST_F(ValueCipher, TheValueOfAnotherKeyIsFoundEvenIfItsHeaderIsForged) {
  struct {
    const char* field;
    void (*change)(remote_identity&);
  } cases[] = {
      {"space", [](remote_identity& id) { id.space[15] ^= 1; }},
      {"epoch", [](remote_identity& id) { ++id.epoch; }},
      {"pool", [](remote_identity& id) { ++id.pool; }},
      {"rank", [](remote_identity& id) { ++id.rank; }},
      {"chunk", [](remote_identity& id) { id.chunk.bytes[0] ^= 1; }},
  };
  for (auto& c : cases) {
    auto other = identity();
    c.change(other);
    auto moved = seal(writer, payload_of(100), {.identity = other});
    EXPECT_EQ(fault_of(reader, moved, expected(100)), value_fault::other_object) << c.field;
    auto header = decode_value_header(moved.header).value();
    header.identity = identity();
    encode(header, moved.header);
    EXPECT_EQ(fault_of(reader, moved, expected(100)), value_fault::not_authentic) << c.field;
  }
}

TEST_F(ValueCipher, AnotherPartIsFoundEvenIfItsHeaderIsForged) {
  const auto payload = payload_of(2 * part_bytes);
  auto moved = seal(writer, payload, {.part = 1});
  EXPECT_EQ(fault_of(reader, moved, expected(payload.size(), 0)), value_fault::other_part);
  auto header = decode_value_header(moved.header).value();
  header.part = 0;
  encode(header, moved.header);
  EXPECT_EQ(fault_of(reader, moved, expected(payload.size(), 0)), value_fault::not_authentic);
}

TEST_F(ValueCipher, PartsOfTwoWritersAreFound) {
  auto as = expected(100);
  as.generation = 99;
  EXPECT_EQ(fault_of(reader, seal(writer, payload_of(100), {.generation = 100}), as),
            value_fault::other_part);
  EXPECT_EQ(fault_of(reader, seal(writer, payload_of(100)), as), std::nullopt);
}

TEST_F(ValueCipher, ATagOfAnotherValueIsFound) {
  auto one = seal(writer, payload_of(100)), other = seal(writer, payload_of(100));
  std::copy_n(other.header.begin() + 168, 16, one.header.begin() + 168);
  forge_checksum(one.header);
  EXPECT_EQ(fault_of(reader, one, expected(100)), value_fault::not_authentic);
  std::fill_n(one.header.begin() + 168, 16, std::byte{0});
  forge_checksum(one.header);
  EXPECT_EQ(fault_of(reader, one, expected(100)), value_fault::not_authentic);
}

// ---- other keys, and none ----

TEST_F(ValueCipher, TheKeyOfAnotherRealmOpensNothing) {
  value_cipher foreign(cipher_key('o'), writer_of(1));
  EXPECT_EQ(fault_of(foreign, seal(writer, payload_of(100)), expected(100)), value_fault::not_authentic);
}

TEST_F(ValueCipher, AValueThatIsNotEncryptedIsRefused) {
  stored_value plain{.header = {}, .bytes = payload_of(100)};
  encode({.identity = identity(),
          .generation = 1,
          .payload_bytes = 100,
          .checksum = payload_checksum(plain.bytes)},
         plain.header);
  ASSERT_TRUE(verify(plain.header, plain.bytes, {.identity = identity(), .payload_bytes = 100}));
  EXPECT_EQ(fault_of(reader, plain, expected(100)), value_fault::other_encryption);
}

TEST_F(ValueCipher, AReaderWithoutEncryptionRefusesAnEncryptedValue) {
  auto value = seal(writer, payload_of(100));
  auto read = verify(value.header, value.bytes, {.identity = identity(), .payload_bytes = 100});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().fault, value_fault::other_encryption);
}

TEST_F(ValueCipher, ARealmThatEncryptsIsAnotherRealm) {
  const std::string key(32, 'k');
  const auto plain = realm::make("", bytes_of(key)).value(),
             encrypts = realm::make("", bytes_of(key), true).value();
  EXPECT_TRUE(plain.cipher_key().empty());
  EXPECT_EQ(encrypts.cipher_key().size(), 32U);
  EXPECT_NE(plain.space_of({}), encrypts.space_of({}));
  EXPECT_NE(plain.epoch_key_of_all(), encrypts.epoch_key_of_all());
  EXPECT_NE(to_hex(encrypts.cipher_key()), to_hex(bytes_of(key)));
  const std::string other(32, 'o');
  EXPECT_TRUE(std::ranges::equal(encrypts.with_key(bytes_of(other)).cipher_key(), encrypts.cipher_key()));
}

} // namespace value_cipher_test
} // namespace terrace::remote
