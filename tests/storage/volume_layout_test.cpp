#include "storage/volume_layout.hpp"

#include "storage/record_block.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

constexpr uint64_t kibibyte = 1024;
constexpr uint64_t mebibyte = 1024 * kibibyte;
constexpr uint64_t gibibyte = 1024 * mebibyte;

uint64_t objects_in_a_checkpoint(const volume_layout& layout) {
  return (layout.checkpoint_bytes / record_block_bytes - 1) * records_per_block;
}

TEST(StoreLayout, FitsTheStoreItWasMadeFor) {
  for (uint64_t capacity :
       {mebibyte, 3 * mebibyte + 4096, 16 * mebibyte, gibibyte, 1000 * gibibyte, 1024 * 1024 * gibibyte}) {
    auto layout = layout_for(capacity);
    EXPECT_TRUE(fits(layout, capacity)) << capacity;
    EXPECT_TRUE(fits(layout_for(capacity, 0, object_bytes_smallest), capacity)) << capacity;
    EXPECT_LE(layout.extents_begin,
              std::max(capacity / (capacity > 100 * gibibyte ? 100 : 38), 600 * kibibyte))
        << capacity;
  }
}

TEST(StoreLayout, HasRoomForTheObjectsThatMayBeThere) {
  for (uint64_t capacity : {mebibyte, 128 * mebibyte, gibibyte, 8 * gibibyte})
    EXPECT_GE(objects_in_a_checkpoint(layout_for(capacity)), capacity / (8 * kibibyte)) << capacity;
  EXPECT_GE(objects_in_a_checkpoint(layout_for(48 * gibibyte)), 1'048'576u);
  EXPECT_GE(objects_in_a_checkpoint(layout_for(1000 * gibibyte)), 1000 * gibibyte / (48 * kibibyte));
  EXPECT_GE(objects_in_a_checkpoint(layout_for(gibibyte, 500'000)), 500'000u);
  EXPECT_LE(objects_in_a_checkpoint(layout_for(gibibyte, 40)), 42u);
  EXPECT_GE(objects_in_a_checkpoint(layout_for(1000 * gibibyte, 0, 12 * kibibyte)),
            1000 * gibibyte / (12 * kibibyte));
  EXPECT_EQ(layout_for(gibibyte, 0, mebibyte), layout_for(gibibyte)) << "as many as fit";
}

TEST(StoreLayout, GoesOnWhenTheFileGrowsOrShrinksALittle) {
  auto layout = layout_for(gibibyte);
  EXPECT_TRUE(fits(layout, 100 * gibibyte));
  EXPECT_TRUE(fits(layout, gibibyte / 4));
  EXPECT_FALSE(fits(layout, 4 * mebibyte));
}

TEST(StoreLayout, LayoutsThatOverlapDoNotFit) {
  const auto good = layout_for(gibibyte);
  auto with = [&](uint64_t volume_layout::*field, uint64_t value) {
    auto layout = good;
    layout.*field = value;
    return fits(layout, gibibyte);
  };
  EXPECT_FALSE(with(&volume_layout::journal_begin, 0));
  EXPECT_FALSE(with(&volume_layout::journal_begin, superblock_area_bytes + 512));
  EXPECT_FALSE(with(&volume_layout::journal_bytes, good.journal_bytes + 4096));
  EXPECT_FALSE(with(&volume_layout::journal_bytes, UINT64_MAX - 4095));
  EXPECT_FALSE(with(&volume_layout::journal_begin, 0 - good.journal_bytes)) << "its end counts round to 0";
  EXPECT_FALSE(with(&volume_layout::checkpoint_begin, 0 - 2 * good.checkpoint_bytes));
  EXPECT_FALSE(with(&volume_layout::checkpoint_bytes, good.checkpoint_bytes + 4096));
  EXPECT_FALSE(with(&volume_layout::extents_begin, good.extents_begin - 4096));
}

} // namespace
} // namespace terrace
