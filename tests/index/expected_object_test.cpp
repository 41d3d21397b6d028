#include "index/object_header.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

using namespace terrace;

namespace {

struct ExpectedObject : ::testing::Test {
  ExpectedObject() {
    space.fingerprint.bytes[3] = 7;
    key.pool = 2;
    key.rank = 1;
    header.identity = expected_of(space, volume, key, generation, 5000).identity;
    header.payload_bytes = 5000;
    header.physical_bytes = physical_bytes_for(5000);
    header.payload_checksum = 77;
  }
  bool is(const expected_object& expected, uint64_t checksum = 77) {
    encode(header, block);
    return is_expected(block, expected, checksum);
  }

  const uint64_t generation = (uint64_t{5} << 40) + 12;
  opened_space space{};
  volume_id volume = random_volume_id();
  object_key key;
  object_header header;
  std::array<std::byte, object_header_bytes> block{};
};

TEST_F(ExpectedObject, IsTheOneOfTheIndex) {
  EXPECT_TRUE(is(expected_of(space, volume, key, generation, 5000)));
}

TEST_F(ExpectedObject, IsNoOther) {
  EXPECT_FALSE(is(expected_of(space, volume, key, generation + 1, 5000)));
  EXPECT_FALSE(is(expected_of(space, volume, key, generation, 5001)));
  EXPECT_FALSE(is(expected_of(space, volume, key, generation, 5000), 78));
  auto other = key;
  other.rank = 0;
  EXPECT_FALSE(is(expected_of(space, volume, other, generation, 5000)));
  auto elsewhere = random_volume_id();
  EXPECT_FALSE(is(expected_of(space, elsewhere, key, generation, 5000)));
  space.fingerprint.bytes[3] = 8;
  EXPECT_FALSE(is(expected_of(space, volume, key, generation, 5000)));
}

TEST_F(ExpectedObject, ADamagedHeaderIsNone) {
  auto expected = expected_of(space, volume, key, generation, 5000);
  ASSERT_TRUE(is(expected));
  for (size_t at : {size_t{0}, size_t{40}, size_t{100}}) {
    auto damaged = block;
    damaged[at] ^= std::byte{1};
    EXPECT_FALSE(is_expected(damaged, expected, 77)) << at;
  }
}

} // namespace
