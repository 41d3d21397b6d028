#include "tier/objects/object_source.hpp"

#include "index/chunk_layout.hpp"
#include "index/space_registry.hpp"
#include "tests/index/spaces.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

space_ptr space() {
  auto spec = terrace::test::mixed_space();
  return std::make_shared<const opened_space>(opened_space{space_id{9}, spec, spec.fingerprint()});
}

} // namespace

TEST(ObjectSource, MakesAnyPartOfTheKeysOfAllRanks) {
  auto in = space();
  chunk_layout layout(in->spec);
  auto chunks = std::make_shared<std::vector<digest>>();
  for (uint64_t n = 0; n < 7; ++n)
    chunks->push_back(key_of(n).chunk);
  object_source all(in, chunks);
  ASSERT_EQ(all.size(), 35u);
  for (size_t first = 0; first <= all.size(); ++first)
    for (size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{11}, SIZE_MAX}) {
      auto part = all.cut(first, count);
      ASSERT_EQ(part.range.first, 0u);
      ASSERT_EQ(part.range.count, std::min(count, all.size() - first));
      ASSERT_EQ(part.objects->size(), part.range.count);
      for (size_t i = 0; i < part.range.count; ++i)
        ASSERT_EQ(part.objects->keys[i],
                  layout.key(in->id, (*chunks)[(first + i) / 5], static_cast<uint32_t>((first + i) % 5)));
      if (part.range.count == 0)
        continue;
      EXPECT_TRUE(part.objects->trailing.test(2));
      EXPECT_FALSE(part.objects->trailing.test(0));
    }
}

TEST(ObjectSource, AWholeBatchHasParentsAndSizes) {
  auto in = std::make_shared<const opened_space>(
      opened_space{space_id{3}, terrace::test::small_space(), terrace::test::small_space().fingerprint()});
  auto chunks = std::make_shared<std::vector<digest>>();
  for (uint64_t n = 0; n < 7; ++n)
    chunks->push_back(key_of(n).chunk);
  auto batch = object_source(in, chunks).whole(2, 3);
  ASSERT_EQ(batch->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    object_key before = batch->keys[i];
    EXPECT_EQ(before.chunk, (*chunks)[2 + i]);
    before.chunk = (*chunks)[1 + i];
    EXPECT_EQ(batch->parents[i], to_entry_key(before));
    EXPECT_EQ(batch->payload_bytes[i], in->spec.pools[0].object_bytes);
  }
  EXPECT_TRUE(object_source(in, chunks).whole(0, 1)->parents[0].empty()) << "the first has none";
  EXPECT_EQ(object_source(in, chunks).whole(7, 4)->size(), 0u);
  auto given = chain(0, 10);
  EXPECT_EQ(object_source(given).whole(0, SIZE_MAX), given);
  EXPECT_EQ(object_source(given).whole(3, 2)->keys[1], given->keys[4]);
}

TEST(ObjectSource, WritesKeysIntoTheRoomThatItIsGiven) {
  auto chunks = std::make_shared<std::vector<digest>>();
  for (uint64_t n = 0; n < 7; ++n)
    chunks->push_back(key_of(n).chunk);
  object_source made(space(), chunks);
  std::vector<object_key> room(10);
  auto keys = made.keys(13, 10, room);
  EXPECT_EQ(keys.data(), room.data());
  EXPECT_EQ(std::vector(keys.begin(), keys.end()), made.cut(13, 10).objects->keys);
  EXPECT_EQ(made.keys(30, 10, room).size(), 5u);
  EXPECT_FALSE(made.chunks(0, 2)) << "a chunk has five objects";
  auto batch = chain(0, 10);
  EXPECT_EQ(object_source(batch).keys(8, 5, room).data(), batch->keys.data() + 8) << "they exist";
  EXPECT_FALSE(object_source(batch).chunks(0, 2));
  EXPECT_TRUE(object_source().keys(0, 9, room).empty());
}

TEST(ObjectSource, OfChunksWithOneObjectThereAreTheDigests) {
  auto in = std::make_shared<const opened_space>(
      opened_space{space_id{3}, terrace::test::small_space(), terrace::test::small_space().fingerprint()});
  auto chunks = std::make_shared<std::vector<digest>>();
  for (uint64_t n = 0; n < 7; ++n)
    chunks->push_back(key_of(n).chunk);
  object_source all(in, chunks);
  ASSERT_EQ(all.size(), 7u);
  auto part = all.chunks(4, 9);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->chunks.data(), chunks->data() + 4);
  EXPECT_EQ(part->chunks.size(), 3u);
  auto keys = all.cut(4, 9);
  for (size_t i = 0; i < 3; ++i) {
    object_key key = part->like;
    key.chunk = part->chunks[i];
    EXPECT_EQ(key, keys.objects->keys[i]);
  }
  EXPECT_TRUE(all.chunks(9, 1)->chunks.empty());
}

TEST(ObjectSource, APartOfABatchIsARangeOfIt) {
  auto batch = chain(0, 10);
  object_source all(batch);
  EXPECT_EQ(all.size(), 10u);
  auto part = all.cut(8, 5);
  EXPECT_EQ(part.objects, batch);
  EXPECT_EQ(part.range.first, 8u);
  EXPECT_EQ(part.range.count, 2u);
  EXPECT_EQ(all.cut(11, 1).range.count, 0u);
}

TEST(ObjectSource, MayBeEmpty) {
  EXPECT_EQ(object_source().size(), 0u);
  EXPECT_EQ(object_source().cut(0, 9).range.count, 0u);
}
