#include "memory/allocator.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

TEST(Paged, GivesConsecutiveSlotsToABatch) {
  auto a = make_allocator("paged", {.capacity_bytes = 1 << 20, .slot_bytes = 5000}).value();
  std::vector<uint64_t> sizes{5000, 1, 4096};
  EXPECT_EQ(a->allocate(sizes).value(), (std::vector<extent>{{0, 8192}, {8192, 8192}, {16384, 8192}}));
  EXPECT_EQ(a->usage().requested_bytes, 9097u);
}

TEST(Paged, SkipsToTheBoundaryWhereASlotWouldCrossIt) {
  auto a =
      make_allocator("paged", {.capacity_bytes = 40960, .boundary_bytes = 20480, .slot_bytes = 8192}).value();
  std::vector<uint64_t> sizes(4, 8192);
  EXPECT_EQ(a->allocate(sizes).value(),
            (std::vector<extent>{{0, 8192}, {8192, 8192}, {20480, 8192}, {28672, 8192}}));
  EXPECT_EQ(a->usage().capacity_bytes, 32768u); // the two gaps of 4096 can never be used
}

TEST(Paged, UsesTheSlotThatWasFreedLastOnceAllWereUsed) {
  auto a = make_allocator("paged", {.capacity_bytes = 16384, .slot_bytes = 4096}).value();
  std::vector<uint64_t> sizes(4, 4096);
  auto all = a->allocate(sizes).value();
  a->free({{all[1], all[3]}});
  EXPECT_EQ(a->allocate(std::span(sizes).first(2)).value(), (std::vector<extent>{all[3], all[1]}));
}

TEST(Paged, NeedsASlotSizeThatFits) {
  for (uint64_t slot : {0, 20480}) {
    auto made = make_allocator("paged", {.capacity_bytes = 16384, .slot_bytes = slot});
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().text.find("slot_bytes"), std::string::npos);
  }
}

} // namespace
} // namespace terrace::test
