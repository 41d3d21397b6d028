#include "cli/random_source.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace::cli {
namespace {

digest numbered(uint8_t n) {
  digest d;
  d.bytes[0] = n;
  return d;
}

std::vector<std::byte> filled(size_t bytes, const digest& of) {
  std::vector<std::byte> content(bytes);
  fill_content(content, of);
  return content;
}

TEST(Content, IsRightAtEveryLength) {
  for (size_t bytes : {0, 1, 7, 8, 9, 4095, 4096, 4097, 12345, 65536})
    EXPECT_EQ(count_wrong_bytes(filled(bytes, numbered(1)), numbered(1)), 0U) << bytes;
}

TEST(Content, AFlippedBitIsSeenWhereverItIs) {
  auto content = filled(12'345, numbered(1));
  random_source random(42);
  for (int i = 0; i < 200; ++i) {
    size_t at = i == 0 ? 0 : i == 1 ? content.size() - 1 : random.below(content.size());
    auto bit = static_cast<std::byte>(1U << random.below(8));
    content[at] ^= bit;
    EXPECT_EQ(count_wrong_bytes(content, numbered(1)), 1U) << "seed 42, byte " << at;
    content[at] ^= bit;
  }
}

TEST(Content, WrongBytesAreCounted) {
  auto content = filled(10'000, numbered(1));
  for (size_t at : {0U, 1U, 4096U, 9'999U})
    content[at] = ~content[at];
  EXPECT_EQ(count_wrong_bytes(content, numbered(1)), 4U);
}

TEST(Content, OfAnotherDigestIsWrongNearlyEverywhere) {
  EXPECT_GT(count_wrong_bytes(filled(10'000, numbered(1)), numbered(2)), 9'900U);
  EXPECT_GT(count_wrong_bytes(std::vector<std::byte>(10'000), numbered(1)), 9'900U);
}

TEST(Content, ShiftedByAWordIsWrong) {
  auto content = filled(10'008, numbered(1));
  EXPECT_GT(count_wrong_bytes(std::span(content).subspan(8), numbered(1)), 9'900U);
}

TEST(Content, StaysTheSameBetweenVersions) { // objects may outlive the program that stored them
  auto content = filled(8, numbered(1));
  uint64_t word = 0;
  for (size_t i = 8; i > 0; --i)
    word = word << 8 | static_cast<uint8_t>(content[i - 1]);
  EXPECT_EQ(word, 7699128653264570162ULL);
}

} // namespace
} // namespace terrace::cli
