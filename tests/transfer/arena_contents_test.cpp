#include "transfer/arena_contents.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

object_place place_of(uint64_t id, uint64_t offset, uint64_t bytes) {
  return {static_cast<object_id>(id), offset, bytes - 1, bytes};
}

TEST(ArenaContents, HasWhatWasWritten) {
  arena_contents contents;
  contents.begin_write(place_of(1, 0, 8192));
  EXPECT_FALSE(contents.has(object_id{1}, 0)) << "it is not complete";
  contents.written(place_of(1, 0, 8192));
  EXPECT_TRUE(contents.has(object_id{1}, 0));
  EXPECT_FALSE(contents.has(object_id{2}, 0));
  EXPECT_FALSE(contents.has(object_id{1}, 8192));
}

TEST(ArenaContents, AWriteEndsAllThatItOverlaps) {
  arena_contents contents;
  for (uint64_t i = 0; i < 4; ++i)
    contents.written(place_of(i + 1, i * 8192, 8192));
  contents.begin_write(place_of(9, 12288, 8192)); // the second half of one, the first half of the next
  EXPECT_TRUE(contents.has(object_id{1}, 0));
  EXPECT_FALSE(contents.has(object_id{2}, 8192));
  EXPECT_FALSE(contents.has(object_id{3}, 16384));
  EXPECT_TRUE(contents.has(object_id{4}, 24576));
  EXPECT_EQ(contents.objects(), 2u);
}

TEST(ArenaContents, AreLostWithTheArena) {
  arena_contents contents;
  contents.written(place_of(1, 0, 8192));
  contents.clear();
  EXPECT_FALSE(contents.has(object_id{1}, 0));
}

} // namespace
} // namespace terrace
