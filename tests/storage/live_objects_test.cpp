#include "storage/live_objects.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace live_objects_test {

index_record object(uint64_t generation, uint8_t chunk, uint32_t payload_bytes = 1000, uint32_t space = 1) {
  index_record r;
  r.space = space;
  r.chunk.bytes[0] = chunk;
  r.generation = generation;
  r.payload_bytes = payload_bytes;
  r.physical_bytes = physical_bytes_for(payload_bytes);
  r.offset = generation << 20;
  return r;
}

std::vector<uint64_t> generations(const ordered_records& objects) {
  std::vector<uint64_t> list;
  for (const index_record& r : objects)
    list.push_back(r.generation);
  return list;
}

using list = std::vector<uint64_t>;

TEST(LiveObjects, OfOneKeyTheNewestStays) {
  ordered_records objects({object(1, 7), object(2, 8), object(3, 7), object(4, 7)});
  EXPECT_EQ(keep_newest_of_each_key(objects), 2u);
  EXPECT_EQ(generations(objects), (list{2, 4}));
}

TEST(LiveObjects, KeysDifferInSpacePoolRankAndChunk) {
  std::vector<index_record> records{object(1, 7), object(2, 8), object(3, 7, 1000, 2), object(4, 7),
                                    object(5, 7)};
  records[3].pool = 1;
  records[4].rank = 1;
  ordered_records objects(records);
  EXPECT_EQ(keep_newest_of_each_key(objects), 0u);
  EXPECT_EQ(generations(objects), (list{1, 2, 3, 4, 5}));
}

TEST(LiveObjects, OfNothingNothingStays) {
  ordered_records objects;
  EXPECT_EQ(keep_newest_of_each_key(objects), 0u);
}

TEST(LiveObjects, AreSummedBySpaceAndBySize) {
  recovered_volume volume;
  volume.spaces = {{1, {5}}, {2, {6}}, {3, {7}}};
  volume.objects = {{object(1, 1, 0), object(2, 2, 4096), object(3, 3, 4097), object(4, 4, 8192, 3)}};
  auto spaces = sum_by_space(volume);
  ASSERT_EQ(spaces.size(), 2u) << "space 2 has none";
  EXPECT_EQ(spaces[0].space.number, 1u);
  EXPECT_EQ(spaces[0].sum, (object_sum{3, 0 + 4096 + 4097, 4096 + 8192 + 12288}));
  EXPECT_EQ(spaces[1].sum, (object_sum{1, 8192, 12288}));
  auto sizes = sum_by_size(volume);
  ASSERT_EQ(sizes.size(), 3u);
  EXPECT_EQ(sizes[0].payload_bytes_max, 1u);
  EXPECT_EQ(sizes[1].payload_bytes_max, 4096u);
  EXPECT_EQ(sizes[1].sum.objects, 1u);
  EXPECT_EQ(sizes[2].payload_bytes_max, 8192u);
  EXPECT_EQ(sizes[2].sum, (object_sum{2, 4097 + 8192, 2 * 12288}));
}

} // namespace live_objects_test
} // namespace terrace
