#include "transfer/write_through_messages.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"
#include "tier/objects/object_hold.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t part_payload = 4096;
constexpr uint64_t part_extent = physical_bytes_for(part_payload);

/// Six objects, in chunks of two.
write_through_notice six(const std::shared_ptr<int>& alive) {
  write_through_notice whole;
  whole.objects = chain(1, 6, part_payload);
  std::vector<object_place> places(6);
  for (size_t i : {0, 1, 2, 4, 5})
    places[i] = {object_id{i + 1}, i * part_extent, part_payload, part_extent};
  whole.held = hold_ptr(new object_hold(release_sink_ptr{}, std::move(places)),
                        [alive](object_hold* all) { delete all; });
  whole.checksums = {10, 11, 12, 13, 14, 15};
  whole.replaceable = true;
  return whole;
}

TEST(NoticeParts, HaveWholeChunksWithTheirPlacesAndSums) {
  auto alive = std::make_shared<int>();
  auto whole = six(alive);
  auto objects = whole.objects;
  auto parts = parts_of(std::move(whole), 2, 5 * part_extent); // two chunks, not two and a half
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].checksums, (std::vector<uint64_t>{10, 11, 12, 13}));
  EXPECT_EQ(parts[1].checksums, (std::vector<uint64_t>{14, 15}));
  ASSERT_EQ(parts[0].objects->size(), 4u);
  ASSERT_EQ(parts[1].objects->size(), 2u);
  ASSERT_EQ(parts[0].held->places().size(), 4u);
  EXPECT_TRUE(parts[0].held->places()[2].present());
  EXPECT_FALSE(parts[0].held->places()[3].present());
  EXPECT_EQ(parts[1].held->places()[0].id, object_id{5});
  EXPECT_TRUE(parts[0].replaceable && parts[1].replaceable);
  EXPECT_EQ(parts[1].objects->payload_bytes[1], objects->payload_bytes[5]);
}

TEST(NoticeParts, KeepTheHoldUntilTheLastOfThemHasEnded) {
  auto alive = std::make_shared<int>();
  auto parts = parts_of(six(alive), 1, part_extent);
  ASSERT_EQ(parts.size(), 6u);
  EXPECT_EQ(alive.use_count(), 2);
  auto last = std::move(parts[3]);
  parts.clear();
  EXPECT_EQ(alive.use_count(), 2);
  last.held = nullptr;
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(NoticeParts, AShortOneStaysAsItIs) {
  auto whole = six(std::make_shared<int>());
  auto held = whole.held;
  auto parts = parts_of(std::move(whole), 2, 6 * part_extent);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].held, held);
  EXPECT_EQ(parts[0].checksums.size(), 6u);
}

} // namespace
