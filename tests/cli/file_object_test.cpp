#include "cli/file_object.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace terrace::cli {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(FileObject, TheKeyIsWhatSha256sumPrints) {
  file_hasher hasher; // FIPS 180-2, B.1, in two pieces
  hasher.add(bytes_of("a"));
  hasher.add(bytes_of("bc"));
  EXPECT_EQ(to_hex(hasher.finish()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(FileObject, PiecesHoldTheHeaderToo) {
  EXPECT_EQ(pieces_of(0, 4096), 1U);
  EXPECT_EQ(pieces_of(4096 - file_header_bytes, 4096), 1U);
  EXPECT_EQ(pieces_of(4096 - file_header_bytes + 1, 4096), 2U);
  EXPECT_EQ(pieces_of(10 * 4096, 4096), 11U);
}

TEST(FileObject, DigestsFollowFromTheKeyAlone) {
  digest key;
  key.bytes[3] = 7;
  auto one = piece_digests(key, 1), four = piece_digests(key, 4);
  ASSERT_EQ(four.size(), 4U);
  EXPECT_EQ(one[0], key);
  EXPECT_EQ(four[0], key);
  EXPECT_NE(four[1], four[2]);
}

TEST(FileObject, TheHeaderKeepsItsBytes) {
  std::vector<std::byte> piece(file_header_bytes);
  write_file_header(piece, 0x0102030405060708);
  std::string text;
  for (size_t i = 0; i < 24; ++i)
    text += "0123456789abcdef"[static_cast<uint8_t>(piece[i]) >> 4],
        text += "0123456789abcdef"[static_cast<uint8_t>(piece[i]) & 15];
  EXPECT_EQ(text, "5445525246494c4501000000000000000807060504030201");
  EXPECT_EQ(read_file_header(piece), 0x0102030405060708U);
}

TEST(FileObject, WhatIsNoHeaderHasNoSize) {
  std::vector<std::byte> piece(file_header_bytes);
  EXPECT_EQ(read_file_header(piece), std::nullopt);
  write_file_header(piece, 5);
  piece[8] = std::byte{2}; // sets another version
  EXPECT_EQ(read_file_header(piece), std::nullopt);
  EXPECT_EQ(read_file_header(std::span(piece).first(10)), std::nullopt);
}

TEST(FileObject, AKeyHas64Digits) {
  EXPECT_TRUE(parse_file_key(std::string(64, 'a')).has_value());
  for (const std::string& text :
       {std::string(63, 'a'), std::string(66, 'a'), std::string(64, 'x'), std::string()})
    EXPECT_THAT(parse_file_key(text).error().text,
                testing::HasSubstr("expected a key of 64 hexadecimal digits"));
}

} // namespace
} // namespace terrace::cli
