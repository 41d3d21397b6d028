#include "index/prefix_plan.hpp"

#include <gtest/gtest.h>

#include <utility>

using namespace terrace;

namespace {

constexpr size_t sizes[] = {0, 1, 63, 64, 65, 127, 128, 129, 192, 200, 1000};

bool third(size_t object) { return object % 3 == 0; }

} // namespace

TEST(ObjectBitmap, KeepsWhatIsSetWhateverItsSize) {
  for (size_t size : sizes) {
    object_bitmap set(size);
    EXPECT_EQ(set.size(), size);
    EXPECT_EQ(set.count(), 0u);
    EXPECT_EQ(set.words().size(), (size + 63) / 64);
    for (size_t i = 0; i < size; i += 3)
      set.set(i);
    EXPECT_EQ(set.count(), (size + 2) / 3);
    auto made = object_bitmap::of(size, third);
    object_bitmap copy = set, moved = std::move(copy);
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(set.test(i), third(i));
      EXPECT_EQ(made.test(i), third(i));
      EXPECT_EQ(moved.test(i), third(i));
    }
    EXPECT_EQ(made.count(), set.count());
  }
}

TEST(ObjectBitmap, MergesAPartOfAnySizeBehindWholeWords) {
  for (size_t size : sizes)
    for (size_t part : sizes)
      for (size_t first = 0; first + part <= size; first += 64) {
        object_bitmap all(size);
        all.merge(first, object_bitmap::of(part, third));
        EXPECT_EQ(all.count(), (part + 2) / 3);
        for (size_t i = 0; i < part; ++i)
          EXPECT_EQ(all.test(first + i), third(i));
      }
}

TEST(ObjectBitmap, ItsFirstObjectsAreACopyWithoutTheRest) {
  for (size_t size : sizes) {
    auto all = object_bitmap::of(size, [](size_t) { return true; });
    for (size_t part : sizes)
      if (part <= size) {
        EXPECT_EQ(all.first(part).count(), part);
        EXPECT_EQ(all.first(part).size(), part);
      }
  }
}
