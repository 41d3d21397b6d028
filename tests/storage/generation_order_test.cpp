#include "storage/volume_layout.hpp"

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

TEST(GenerationOrder, IsThatOfAStableSort) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 dice(seed);
  for (uint64_t range : {uint64_t{2}, uint64_t{1000}, uint64_t{1} << 41, UINT64_MAX}) {
    std::vector<uint64_t> generations(2000);
    for (uint64_t& generation : generations)
      generation = dice() % range;
    auto records = with_generations(generations);
    auto expected = records;
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.generation < b.generation; });
    sort_by_generation(records);
    EXPECT_EQ(records, expected) << "below " << range;
  }
}

TEST(GenerationOrder, LeavesWhatIsInOrder) {
  auto records = with_generations({1, 1, 2, UINT64_MAX});
  auto expected = records;
  sort_by_generation(records);
  EXPECT_EQ(records, expected);
  records.clear();
  sort_by_generation(records);
  EXPECT_TRUE(records.empty());
}

} // namespace
} // namespace terrace
