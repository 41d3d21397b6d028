#include "tier/objects/tier_changes.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr size_t step = long_notices::step_objects;

struct LongNotices : ::testing::Test {
  residency tier{tier_kind::host};
  long_notices line;

  /// Stores and holds objects.
  std::vector<object_id> store(size_t count) {
    acquire_request request;
    request.objects = chain(0, count);
    auto wanted = tier.missing(request);
    std::vector<extent> granted;
    for (uint64_t offset = 0; uint64_t size : wanted.sizes) {
      granted.push_back({offset, size});
      offset += size;
    }
    std::vector<object_id> ids;
    for (const object_place& place : tier.publish(tier.acquire(request, wanted, granted).places, true))
      ids.push_back(place.id);
    return ids;
  }
};

} // namespace

TEST_F(LongNotices, AReleaseIsAppliedPartByPart) {
  line.add(release_notice{store(2 * step + 1)});
  EXPECT_EQ(tier.table().totals().held.objects, 2 * step + 1);
  (void) line.step(tier);
  EXPECT_EQ(tier.table().totals().held.objects, step + 1);
  (void) line.step(tier);
  EXPECT_FALSE(line.empty());
  (void) line.step(tier);
  EXPECT_TRUE(line.empty());
  EXPECT_EQ(tier.table().totals().held.objects, 0u);
}

TEST_F(LongNotices, DiscardedObjectsAreFreedWhenTheyAreNotHeld) {
  auto ids = store(step + 3);
  line.add(discard_notice{ids, discard_reason::unusable});
  line.add(release_notice{ids});
  auto first = line.step(tier);
  EXPECT_EQ(first.discarded, step);
  EXPECT_EQ(first.why, discard_reason::unusable);
  EXPECT_TRUE(first.freed.empty()) << "they are held";
  EXPECT_EQ(line.step(tier).discarded, 3u);
  EXPECT_EQ(line.step(tier).freed.size(), step);
  EXPECT_EQ(line.step(tier).freed.size(), 3u);
  EXPECT_TRUE(line.empty());
}

TEST_F(LongNotices, AnEmptyNoticeIsAStepThatDoesNothing) {
  line.add(release_notice{});
  EXPECT_TRUE(line.step(tier).freed.empty());
  EXPECT_TRUE(line.empty());
}
