#include "storage/record_block.hpp"

#include "bytes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace {
namespace record_block_test {

using bytes_4k = std::array<std::byte, record_block_bytes>;

constexpr volume_id own{{1, 2, 3}};
const block_heading heading{block_kind::journal, own, 0x1122, 0};

index_record record(uint64_t number) {
  index_record r;
  r.space = 1;
  r.generation = first_generation(1) + number;
  r.offset = number * 8192;
  r.physical_bytes = 8192;
  r.payload_bytes = 4096;
  return r;
}

std::vector<index_record> records(size_t count) {
  std::vector<index_record> list;
  for (size_t i = 0; i < count; ++i)
    list.push_back(record(i));
  return list;
}

bytes_4k encoded(const block_heading& with, size_t count) {
  bytes_4k bytes;
  encode_block(with, records(count), bytes);
  return bytes;
}

TEST(RecordBlock, GivesItsRecordsBack) {
  for (size_t count : {size_t{0}, size_t{1}, size_t{records_per_block}}) {
    auto bytes = encoded(heading, count);
    auto view = read_block(block_kind::journal, own, bytes);
    ASSERT_EQ(view.state, block_state::good);
    EXPECT_EQ(view.heading, heading);
    ASSERT_EQ(view.records, count);
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(decode_record(view.record(i)), record(i));
  }
}

// Disks contain these bytes: if this test fails, change the version, not the test.
TEST(RecordBlock, HasItsGoldenBytes) {
  auto bytes = encoded(heading, 2);
  EXPECT_EQ(hex_of(bytes, 0, 16), "544552524a524e4c"
                                  "0100"
                                  "0200"
                                  "00000000");
  EXPECT_EQ(hex_of(bytes, 16, 24), "01020300000000000000000000000000"
                                   "2211000000000000");
  EXPECT_EQ(hex_of(bytes, 40, 8), "cc94381446e09520");
  auto image = encoded({block_kind::image, own, 7, 0x0304}, 1);
  EXPECT_EQ(hex_of(image, 0, 16), "54455252494d4147"
                                  "0100"
                                  "0100"
                                  "04030000");
  EXPECT_EQ(hex_of(image, 40, 8), "724937c64829dbd1");
}

TEST(RecordBlock, ABlockThatWasNeverWrittenIsEmpty) {
  EXPECT_EQ(read_block(block_kind::journal, own, bytes_4k{}).state, block_state::empty);
}

TEST(RecordBlock, AnyFlippedBitIsDamage) {
  for (size_t at = 0; at < record_block_bytes; at += 37) {
    auto bytes = encoded(heading, 20);
    bytes[at] ^= std::byte{0x10};
    EXPECT_EQ(read_block(block_kind::journal, own, bytes).state, block_state::damaged) << at;
  }
}

TEST(RecordBlock, BlocksOfAnotherStoreOrKindAreNotRead) {
  auto bytes = encoded(heading, 3);
  EXPECT_EQ(read_block(block_kind::journal, {{9}}, bytes).state, block_state::foreign);
  EXPECT_EQ(read_block(block_kind::image, own, bytes).state, block_state::foreign);
}

} // namespace record_block_test
} // namespace terrace
