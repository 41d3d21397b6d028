// Compressed values come back bit for bit, and whatever bytes are given to the decoder, it stays within its memory.
#include "remote/value_compression.hpp"

#include "index/payload_checksum.hpp"
#include "remote/value_cipher.hpp"
#include "remote/value_header.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

namespace terrace::remote {
namespace value_compression_test {

constexpr size_t piece = value_compressor::piece_bytes;
using bytes = std::vector<std::byte>;

/// Gaussian noise as bfloat16: what is most like KV among what needs no model.
bytes bfloats(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> values;
  bytes made(count);
  for (size_t i = 0; i + 1 < count; i += 2) {
    const auto high = static_cast<uint16_t>(std::bit_cast<uint32_t>(values(random)) >> 16);
    std::memcpy(made.data() + i, &high, sizeof high);
  }
  if (count % 2 != 0)
    made.back() = std::byte{0x77};
  return made;
}

bytes noise(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  bytes made(count);
  for (std::byte& each : made)
    each = static_cast<std::byte>(random());
  return made;
}

/// Empty: it is not compressed.
bytes pack(const bytes& payload) {
  value_compressor zstd;
  bytes into(payload.size() + 2, std::byte{0x5a});
  value_packing packing(zstd, payload, std::span(into).subspan(1, payload.size()));
  size_t taken = 0;
  while (!packing.done()) {
    const size_t now = packing.advance();
    EXPECT_GT(now, 0U);
    EXPECT_LE(now, piece);
    taken += now;
  }
  EXPECT_LE(taken, payload.size());
  EXPECT_EQ(packing.advance(), 0U);
  EXPECT_TRUE(into.front() == std::byte{0x5a} && into.back() == std::byte{0x5a});
  return {into.begin() + 1, into.begin() + 1 + static_cast<ptrdiff_t>(packing.packed_bytes())};
}

/// nullopt: they are no compressed value of this size.
std::optional<bytes> unpack(const bytes& packed, size_t payload_bytes) {
  value_compressor zstd;
  bytes memory(payload_bytes + 2, std::byte{0x5a});
  std::ranges::copy(packed, memory.begin() + 1);
  value_unpacking unpacking(zstd, std::span(memory).subspan(1, payload_bytes), packed.size());
  while (!unpacking.done())
    EXPECT_LE(unpacking.advance(), piece);
  EXPECT_TRUE(memory.front() == std::byte{0x5a} && memory.back() == std::byte{0x5a})
      << "it wrote beside its memory";
  if (!unpacking.succeeded())
    return std::nullopt;
  return bytes(memory.begin() + 1, memory.end() - 1);
}

uint32_t frame_bytes(const bytes& packed, size_t index) {
  uint32_t told = 0;
  std::memcpy(&told, packed.data() + index * sizeof told, sizeof told);
  return told;
}
void set_frame_bytes(bytes& packed, size_t index, uint32_t told) {
  std::memcpy(packed.data() + index * sizeof told, &told, sizeof told);
}

TEST(ValueCompression, ValuesOfAllSizesComeBack) {
  for (size_t size :
       {size_t{2'000}, size_t{2'001}, size_t{4'096}, piece - 2, piece - 1, piece, piece + 1, piece + 2,
        2 * piece, 3 * piece + 12'345, size_t{part_bytes}, size_t{bulk_part_bytes}}) {
    SCOPED_TRACE(size);
    const auto payload = bfloats(size);
    const auto packed = pack(payload);
    ASSERT_FALSE(packed.empty());
    EXPECT_LE(packed.size(), size - size / 16);
    auto back = unpack(packed, size);
    ASSERT_TRUE(back);
    EXPECT_TRUE(*back == payload);
  }
}

TEST(ValueCompression, NoiseInBfloat16BecomesAThirdSmaller) {
  const auto payload = bfloats(part_bytes);
  const double ratio = static_cast<double>(payload.size()) / static_cast<double>(pack(payload).size());
  EXPECT_GT(ratio, 1.4);
  EXPECT_LT(ratio, 1.5);
}

TEST(ValueCompression, ConstantsTakeHalf) {
  const auto packed = pack(bytes(part_bytes));
  EXPECT_LT(packed.size(), part_bytes / 2 + 1'000) << "the low bytes are stored as they are";
  EXPECT_TRUE(unpack(packed, part_bytes) == bytes(part_bytes));
}

TEST(ValueCompression, WhatDoesNotBecomeSmallerIsLeft) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{2}, size_t{7}, size_t{100}, size_t{5'000}, piece,
                      piece + 1, size_t{part_bytes}})
    EXPECT_TRUE(pack(noise(size)).empty()) << size;
  for (size_t size : {size_t{0}, size_t{1}, size_t{4}, size_t{5}, size_t{20}})
    EXPECT_TRUE(pack(bytes(size)).empty() || unpack(pack(bytes(size)), size) == bytes(size)) << size;
}

TEST(ValueCompression, NoiseIsGivenUpAfterItsFirstPiece) {
  value_compressor zstd;
  const auto payload = noise(8 * piece);
  bytes into(payload.size());
  value_packing packing(zstd, payload, into);
  EXPECT_EQ(packing.advance(), piece);
  EXPECT_TRUE(packing.done());
  EXPECT_EQ(packing.packed_bytes(), 0U);
}

TEST(ValueCompression, APieceOfNoiseAmongOthersComesBack) {
  auto payload = bfloats(6 * piece);
  std::ranges::copy(noise(piece), payload.begin() + 2 * piece);
  const auto packed = pack(payload);
  ASSERT_FALSE(packed.empty());
  EXPECT_TRUE(unpack(packed, payload.size()) == payload);
}

TEST(ValueCompression, OneCompressorServesValueAfterValue) {
  value_compressor zstd;
  for (uint32_t seed = 1; seed < 6; ++seed) {
    const auto payload = bfloats(piece + seed * 1'000, seed);
    bytes memory(payload.size());
    value_packing packing(zstd, payload, memory);
    while (!packing.done())
      packing.advance();
    ASSERT_NE(packing.packed_bytes(), 0U);
    value_unpacking unpacking(zstd, memory, packing.packed_bytes());
    while (!unpacking.done())
      unpacking.advance();
    EXPECT_TRUE(unpacking.succeeded() && memory == payload);
  }
}

// Other daemons read these bytes: if this test fails, change the version, not the test.
TEST(ValueCompression, HasItsLayout) {
  const size_t size = piece + 2'001;
  const auto payload = bfloats(size);
  const auto packed = pack(payload);
  ASSERT_FALSE(packed.empty());
  size_t at = 8;
  for (size_t i = 0; i < 2; ++i) {
    const size_t begin = i * piece, count = std::min(piece, size - begin), floats = count / 2;
    for (size_t f = 0; f < floats; ++f)
      ASSERT_EQ(packed[at + f], payload[begin + 2 * f]) << f;
    if (count % 2 != 0) {
      EXPECT_EQ(packed[at + floats], payload.back());
    }
    at += count - floats;
    bytes high(floats);
    ASSERT_EQ(ZSTD_decompress(high.data(), high.size(), packed.data() + at, frame_bytes(packed, i)), floats);
    for (size_t f = 0; f < floats; ++f)
      ASSERT_EQ(high[f], payload[begin + 2 * f + 1]) << f;
    at += frame_bytes(packed, i);
  }
  EXPECT_EQ(at, packed.size());
}

// ---- bytes that nobody wrote ----

TEST(ValueCompression, AValueThatIsCutIsNone) {
  const auto packed = pack(bfloats(piece + 5'000));
  for (size_t left :
       {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{100}, packed.size() / 2, packed.size() - 1})
    EXPECT_FALSE(unpack({packed.begin(), packed.begin() + static_cast<ptrdiff_t>(left)}, piece + 5'000))
        << left;
  auto longer = packed;
  longer.push_back({});
  EXPECT_FALSE(unpack(longer, piece + 5'000));
  EXPECT_FALSE(unpack(packed, piece + 5'001)) << "it has another size";
  EXPECT_FALSE(unpack(packed, 2 * piece + 1)) << "and other pieces";
  EXPECT_FALSE(unpack({}, 0));
}

TEST(ValueCompression, FalseLengthsAreFound) {
  const size_t size = 3 * piece;
  const auto packed = pack(bfloats(size));
  for (uint32_t told : {0U, 1U, frame_bytes(packed, 1) + 1, 1U << 17, 1U << 31, UINT32_MAX}) {
    auto changed = packed;
    set_frame_bytes(changed, 1, told);
    EXPECT_FALSE(unpack(changed, size)) << told;
  }
  // The sum is right, but a piece would begin in the middle of a frame.
  auto shifted = packed;
  set_frame_bytes(shifted, 0, frame_bytes(packed, 0) + 5);
  set_frame_bytes(shifted, 1, frame_bytes(packed, 1) - 5);
  EXPECT_FALSE(unpack(shifted, size));
}

/// A value of one piece with this frame.
bytes with_frame(const bytes& frame, size_t payload_bytes) {
  bytes packed(4 + payload_bytes / 2);
  set_frame_bytes(packed, 0, static_cast<uint32_t>(frame.size()));
  packed.insert(packed.end(), frame.begin(), frame.end());
  return packed;
}
bytes frame_of(const bytes& content) {
  bytes frame(ZSTD_compressBound(content.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 19));
  return frame;
}

TEST(ValueCompression, ABombIsNotExpanded) {
  const size_t size = 20'000;
  EXPECT_TRUE(unpack(with_frame(frame_of(bytes(size / 2)), size), size)) << "that is how a value is made";
  const auto bomb = frame_of(bytes(256 << 20));
  ASSERT_LT(bomb.size(), 30'000U);
  EXPECT_FALSE(unpack(with_frame(bomb, 2 * bomb.size() + size), 2 * bomb.size() + size));
  EXPECT_FALSE(unpack(with_frame(frame_of(bytes(size / 2 + 1)), size), size)) << "a byte too many";
  EXPECT_FALSE(unpack(with_frame(frame_of(bytes(size / 2 - 1)), size), size)) << "a byte too few";
  EXPECT_FALSE(unpack(with_frame({}, size), size)) << "no frame";
}

TEST(ValueCompression, ChangedBytesNeverLeaveTheMemory) {
  const size_t size = 2 * piece + 777;
  const auto packed = pack(bfloats(size));
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    auto changed = packed;
    for (int i = 0; i < 1 + round % 8; ++i)
      changed[random() % changed.size()] = static_cast<std::byte>(random());
    if (round % 3 == 0)
      changed[random() % 12] = static_cast<std::byte>(random());
    if (round % 5 == 0)
      changed.resize(random() % changed.size());
    unpack(changed, size);
  }
}

TEST(ValueCompression, APieceThatBeginsBehindItsPlaceIsRefused) {
  // One frame is larger than its piece's high bytes, so the next piece would be covered while the first is expanded.
  const size_t size = piece + 1'000;
  const auto content = noise(piece / 2);
  const auto large = frame_of(content);
  ASSERT_GT(large.size(), content.size());
  bytes packed(8);
  set_frame_bytes(packed, 0, static_cast<uint32_t>(large.size()));
  packed.resize(8 + piece / 2);
  packed.insert(packed.end(), large.begin(), large.end());
  const auto small = frame_of(bytes(500));
  set_frame_bytes(packed, 1, static_cast<uint32_t>(small.size()));
  packed.resize(packed.size() + 500);
  packed.insert(packed.end(), small.begin(), small.end());
  ASSERT_LE(packed.size(), size);
  EXPECT_FALSE(unpack(packed, size));
}

// ---- which spaces ----

TEST(ValueCompression, OnlyHalfFloatsAreCompressed) {
  space_spec spec;
  spec.pools = {{.name = "kv"}};
  for (const char* dtype : {"bfloat16", "bf16", "float16", "fp16", "half"}) {
    spec.dtype = dtype;
    EXPECT_TRUE(consists_of_half_floats(spec, 0)) << dtype;
  }
  for (const char* dtype : {"", "float32", "fp8", "uint8", "bytes", "int16", "bfloat", "float8_e4m3"}) {
    spec.dtype = dtype;
    EXPECT_FALSE(consists_of_half_floats(spec, 0)) << dtype;
  }
}

TEST(ValueCompression, TensorsSayWhatAPoolConsistsOf) {
  space_spec spec;
  spec.dtype = "bfloat16";
  spec.pools = {{.name = "kv"}, {.name = "state"}, {.name = "both"}};
  spec.pools[1].tensors = {{.dtype = "float32"}};
  spec.pools[2].tensors = {{.dtype = "bfloat16"}, {.dtype = "float32"}};
  EXPECT_TRUE(consists_of_half_floats(spec, 0));
  EXPECT_FALSE(consists_of_half_floats(spec, 1));
  EXPECT_FALSE(consists_of_half_floats(spec, 2));
  spec.dtype = "fp8";
  spec.pools[2].tensors[1].dtype = "float16";
  EXPECT_TRUE(consists_of_half_floats(spec, 2));
}

// ---- headers ----

value_header header_of(size_t payload_bytes, size_t packed_bytes) {
  return {.identity = {.epoch = 1, .digest_width = 32},
          .generation = 7,
          .payload_bytes = payload_bytes,
          .packed_bytes = static_cast<uint32_t>(packed_bytes)};
}

TEST(ValueCompression, AHeaderSaysHowManyBytesAreStored) {
  const auto payload = bfloats(10'000);
  const auto packed = pack(payload);
  auto header = header_of(payload.size(), packed.size());
  header.checksum = payload_checksum(packed);
  std::array<std::byte, value_header_bytes> block;
  encode(header, block);
  EXPECT_EQ(block[8], std::byte{3}) << "the version, which older daemons refuse";
  EXPECT_EQ(decode_value_header(block).value(), header);
  const expected_part expected{.identity = header.identity, .payload_bytes = payload.size()};
  EXPECT_EQ(verify(block, packed, expected).value(), 7U);
  EXPECT_TRUE(has_length(block, packed.size(), expected));
  EXPECT_FALSE(has_length(block, payload.size(), expected));
  auto cut = packed;
  cut.pop_back();
  EXPECT_EQ(verify(block, cut, expected).error().fault, value_fault::other_length);
  auto changed = packed;
  changed[100] ^= std::byte{1};
  EXPECT_EQ(verify(block, changed, expected).error().fault, value_fault::wrong_payload);
}

TEST(ValueCompression, AHeaderOfAValueThatIsNotSmallerIsRefused) {
  const auto payload = bfloats(1'000);
  auto header = header_of(payload.size(), payload.size());
  header.checksum = payload_checksum(payload);
  std::array<std::byte, value_header_bytes> block;
  encode(header, block);
  EXPECT_EQ(
      verify(block, payload, {.identity = header.identity, .payload_bytes = payload.size()}).error().fault,
      value_fault::other_length)
      << "its bytes would be taken for the payload";
}

TEST(ValueCompression, AValueIsCompressedAndThenEncrypted) {
  const std::vector<uint8_t> key(32, 1);
  value_cipher cipher(key, {});
  const auto payload = bfloats(300'001);
  auto stored = pack(payload);
  const auto packed = stored;
  const auto header = header_of(payload.size(), stored.size());
  std::array<std::byte, value_header_bytes> block;
  value_sealing sealing(cipher, header, stored, stored, block); // where they are
  while (!sealing.done())
    sealing.advance(70'000);
  EXPECT_NE(stored, packed);
  EXPECT_EQ(block[8], std::byte{4});
  const expected_part expected{
      .identity = header.identity, .payload_bytes = payload.size(), .encrypted = true};
  for (bool changed : {false, true}) {
    auto received = stored;
    auto head = block;
    if (changed)
      received[5'000] ^= std::byte{1};
    value_opening opening(cipher, head, received, expected);
    while (!opening.done())
      opening.advance(70'000);
    ASSERT_EQ(opening.verified().has_value(), !changed);
    if (changed)
      continue;
    auto back = unpack(received, payload.size());
    EXPECT_TRUE(back && *back == payload);
  }
}

TEST(ValueCompression, TheLengthIsAuthenticated) {
  const std::vector<uint8_t> key(32, 1);
  value_cipher cipher(key, {});
  auto stored = pack(bfloats(10'000));
  const auto header = header_of(10'000, stored.size());
  std::array<std::byte, value_header_bytes> block;
  value_sealing sealing(cipher, header, stored, stored, block);
  while (!sealing.done())
    sealing.advance(SIZE_MAX);
  auto forged = decode_value_header(block).value();
  --forged.packed_bytes; // whoever writes to the store makes the checksum of the header right
  encode(forged, block);
  value_opening opening(cipher, block, std::span(stored).first(stored.size() - 1),
                        {.identity = header.identity, .payload_bytes = 10'000, .encrypted = true});
  while (!opening.done())
    opening.advance(SIZE_MAX);
  EXPECT_EQ(opening.verified().error().fault, value_fault::not_authentic);
}

} // namespace value_compression_test
} // namespace terrace::remote
