#include "index/payload_checksum.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <vector>

namespace terrace {
namespace {

TEST(PayloadChecksum, IsXxh3OfTheBytes) {
  // The reference value of the empty input, and of "abc" as `xxhsum -H3` gives it.
  EXPECT_EQ(payload_checksum({}), 0x2d06800538d394c2u);
  const char text[] = "abc";
  EXPECT_EQ(payload_checksum(std::as_bytes(std::span(text, 3))), 0x78af5f94892f3950u);
}

// Another daemon, on another processor, may read the volume.
TEST(PayloadChecksum, IsTheSameWhateverInstructionsComputeIt) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::byte> payload(70'000);
  for (auto& b : payload)
    b = static_cast<std::byte>(random());
  payload_checksummer sum;
  for (size_t bytes = 0; bytes <= payload.size(); bytes += bytes < 1100 ? 1 : 997) {
    std::span<const std::byte> of(payload.data(), bytes);
    const uint64_t plain = XXH3_64bits(of.data(), of.size());
    EXPECT_EQ(payload_checksum(of), plain) << bytes;
    sum.restart();
    sum.update(of.first(bytes / 3));
    sum.update(of.subspan(bytes / 3));
    EXPECT_EQ(sum.value(), plain) << bytes;
  }
}

TEST(PayloadChecksum, PiecesOfAnySizeGiveTheSameValue) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::byte> payload(300'000);
  for (auto& b : payload)
    b = static_cast<std::byte>(random());
  payload_checksummer sum;
  std::span<const std::byte> rest(payload);
  while (!rest.empty()) {
    size_t n = std::min<size_t>(rest.size(), random() % 20'000);
    sum.update(rest.first(n));
    rest = rest.subspan(n);
  }
  EXPECT_EQ(sum.value(), payload_checksum(payload));
  sum.restart();
  sum.update(payload);
  EXPECT_EQ(sum.value(), payload_checksum(payload));
}

TEST(PayloadChecksum, OneBitChangesIt) {
  std::vector<std::byte> payload(4096);
  auto before = payload_checksum(payload);
  payload[4095] = std::byte{1};
  EXPECT_NE(payload_checksum(payload), before);
}

} // namespace
} // namespace terrace
