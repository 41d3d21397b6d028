#include "storage/recovery.hpp"

#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace {
namespace {

std::vector<index_record> with_generations(const std::vector<uint64_t>& generations) {
  std::vector<index_record> records(generations.size());
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].generation = generations[i];
    records[i].offset = i;
  }
  return records;
}

std::vector<index_record> in_order(const ordered_records& records) {
  std::vector<index_record> list;
  for (const index_record& record : records)
    list.push_back(record);
  return list;
}

TEST(GenerationOrder, IsThatOfAStableSort) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 dice(seed);
  for (uint64_t range : {uint64_t{2}, uint64_t{1000}, uint64_t{1} << 41, UINT64_MAX}) {
    std::vector<uint64_t> generations(2000);
    for (uint64_t& generation : generations)
      generation = dice() % range;
    auto expected = with_generations(generations);
    ordered_records records(expected);
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.generation < b.generation; });
    EXPECT_EQ(in_order(records), expected) << "below " << range;
    auto goes = [](const index_record& record) { return record.offset % 3 == 0; };
    auto left = records.size();
    EXPECT_EQ(records.erase_if(goes), std::erase_if(expected, goes));
    EXPECT_LT(records.size(), left);
    EXPECT_EQ(in_order(records), expected) << "some are gone";
    records.erase_if([](const index_record&) { return true; });
    EXPECT_TRUE(records.empty());
    EXPECT_EQ(records.begin(), records.end());
  }
}

TEST(GenerationOrder, LeavesWhatIsInOrder) {
  auto expected = with_generations({1, 1, 2, UINT64_MAX});
  ordered_records records(expected);
  EXPECT_EQ(in_order(records), expected);
  EXPECT_EQ(records.erase_if([](const index_record& record) { return record.generation == 1; }), 2u);
  EXPECT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0], expected[2]);
  EXPECT_TRUE(ordered_records().empty());
}

TEST(GenerationOrder, RecordsThatAreRemovedBeforeTheyAreOrderedStayAway) {
  ordered_records records;
  for (const index_record& record : with_generations({5, 3, 4, 3, 1}))
    records.add(record);
  EXPECT_EQ(records.erase_if([](const index_record& record) { return record.generation == 4; }), 1u);
  records.order();
  std::vector<uint64_t> places;
  for (const index_record& record : records)
    places.push_back(record.offset);
  EXPECT_EQ(places, (std::vector<uint64_t>{4, 1, 3, 0})) << "those of generation 3 as they were added";
}

} // namespace
} // namespace terrace
