#include "transfer/scatter_gather.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(ObjectRuns, OneRunEachIsTheDefault) {
  std::vector<region_run> runs{{0, 100, 0, 1}, {500, 100, 0, 1}};
  std::vector<uint64_t> objects{100, 100};
  auto made = scatter_gather::make(runs, {}, objects, 600);
  ASSERT_TRUE(made) << made.error().text;
  auto pieces = made->pieces(1);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].object_offset, 0u);
  EXPECT_EQ(pieces[0].region_offset, 500u);
  EXPECT_EQ(pieces[0].bytes, 100u);
}

TEST(ObjectRuns, StridedRunsBecomePiecesInOrder) {
  std::vector<region_run> runs{{10, 5, 100, 3}, {1000, 7, 0, 1}};
  std::vector<uint32_t> per_object{2};
  std::vector<uint64_t> objects{22};
  auto pieces = scatter_gather::make(runs, per_object, objects, 2000)->pieces(0);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[2].region_offset, 210u);
  EXPECT_EQ(pieces[2].object_offset, 10u);
  EXPECT_EQ(pieces[3].object_offset, 15u);
}

TEST(ObjectRuns, NeighboursMerge) {
  std::vector<region_run> runs{{0, 8, 8, 4}, {32, 8, 0, 1}};
  std::vector<uint32_t> per_object{2};
  std::vector<uint64_t> objects{40};
  auto pieces = scatter_gather::make(runs, per_object, objects, 40)->pieces(0);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].bytes, 40u);
}

struct bad_case {
  const char* what;
  std::vector<region_run> runs;
  std::vector<uint32_t> per_object;
  std::vector<uint64_t> objects;
  const char* says;
};

class ObjectRunsRefuse : public testing::TestWithParam<bad_case> {};

TEST_P(ObjectRunsRefuse, WithATextThatSaysWhy) {
  const bad_case& bad = GetParam();
  auto made = scatter_gather::make(bad.runs, bad.per_object, bad.objects, 1000);
  ASSERT_FALSE(made) << bad.what;
  EXPECT_EQ(made.error().code, errc::bad_request);
  EXPECT_NE(made.error().text.find(bad.says), std::string::npos) << made.error().text;
}

INSTANTIATE_TEST_SUITE_P(
    All, ObjectRunsRefuse,
    testing::Values(
        bad_case{"end outside", {{950, 100, 0, 1}}, {}, {100}, "exceeds the region"},
        bad_case{"overflow of the stride", {{0, 1, UINT64_MAX, 3}}, {}, {3}, "exceeds the region"},
        bad_case{"overflow of the offset", {{UINT64_MAX, 1, 0, 1}}, {}, {1}, "exceeds the region"},
        bad_case{"no pieces", {{0, 10, 0, 0}}, {}, {10}, "empty"},
        bad_case{"no bytes", {{0, 0, 0, 4}}, {}, {10}, "empty"},
        bad_case{"too short", {{0, 10, 0, 1}}, {}, {20}, "hold 10 bytes"},
        bad_case{"too few runs", {{0, 10, 0, 1}}, {}, {10, 10}, "has no run"},
        bad_case{"too many runs", {{0, 10, 0, 1}, {10, 10, 0, 1}}, {}, {10}, "2 runs were given"},
        bad_case{"counts of other objects", {{0, 10, 0, 1}}, {1, 1}, {10}, "runs_per_object"}));

} // namespace
} // namespace terrace
