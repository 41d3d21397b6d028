#include "transfer/scatter_gather.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

std::vector<object_piece> pieces_of(const scatter_gather& runs, size_t object) {
  std::vector<object_piece> list;
  auto pieces = runs.pieces(object);
  while (auto piece = pieces.next())
    list.push_back(*piece);
  EXPECT_EQ(list.size(), runs.count(object).pieces);
  return list;
}

TEST(ObjectRuns, OneRunEachIsTheDefault) {
  std::vector<region_run> runs{{0, 100, 0, 1}, {500, 100, 0, 1}};
  std::vector<uint64_t> objects{100, 100};
  auto made = scatter_gather::make(runs, {}, objects, 600);
  ASSERT_TRUE(made) << made.error().text;
  auto pieces = pieces_of(*made, 1);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].object_offset, 0u);
  EXPECT_EQ(pieces[0].region_offset, 500u);
  EXPECT_EQ(pieces[0].bytes, 100u);
}

TEST(ObjectRuns, StridedRunsBecomePiecesInOrder) {
  std::vector<region_run> runs{{10, 5, 100, 3}, {1000, 7, 0, 1}};
  std::vector<uint32_t> per_object{2};
  std::vector<uint64_t> objects{22};
  auto made = scatter_gather::make(runs, per_object, objects, 2000);
  auto pieces = pieces_of(*made, 0);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[2].region_offset, 210u);
  EXPECT_EQ(pieces[2].object_offset, 10u);
  EXPECT_EQ(pieces[3].object_offset, 15u);
}

TEST(ObjectRuns, APartHasTheRestOfAPieceAndTheBeginningOfAnother) {
  std::vector<region_run> runs{
      {10, 5, 100, 3}, {1000, 7, 0, 1}, {region_run::skipped, 4, 0, 1}, {1007, 2, 0, 1}};
  std::vector<uint32_t> per_object{4};
  std::vector<uint64_t> objects{28};
  auto made = scatter_gather::make(runs, per_object, objects, 2000);
  ASSERT_TRUE(made) << made.error().text;
  auto all = made->pieces(0, {7, 27});
  for (const object_piece& expected : {object_piece{7, 112, 3}, {10, 210, 5}, {15, 1000, 7}, {26, 1007, 1}}) {
    auto piece = all.next();
    ASSERT_TRUE(piece);
    EXPECT_EQ(piece->object_offset, expected.object_offset);
    EXPECT_EQ(piece->region_offset, expected.region_offset);
    EXPECT_EQ(piece->bytes, expected.bytes);
  }
  EXPECT_FALSE(all.next());
  EXPECT_EQ(made->count(0, {7, 27}).bytes, 16u);
  EXPECT_EQ(made->count(0, {7, 27}).pieces, 4u);
  EXPECT_EQ(made->count(0, {23, 26}).bytes, 0u) << "all of it is skipped";
  EXPECT_FALSE(made->pieces(0, {23, 26}).next());
  EXPECT_EQ(made->count(0, {17, 17}).pieces, 0u);
  EXPECT_FALSE(made->pieces(0, {28, UINT64_MAX}).next());
}

TEST(ObjectRuns, NeighboursMerge) {
  std::vector<region_run> runs{{0, 8, 8, 4}, {32, 8, 0, 1}};
  std::vector<uint32_t> per_object{2};
  std::vector<uint64_t> objects{40};
  auto made = scatter_gather::make(runs, per_object, objects, 40);
  auto pieces = pieces_of(*made, 0);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].bytes, 40u);
}

TEST(ObjectRuns, ARunMayContinueTheOneBeforeItForItsFirstPieceOnly) {
  std::vector<region_run> runs{{0, 8, 0, 1}, {8, 8, 16, 3}, {48, 4, 4, 2}, {0, 1, 0, 1}};
  std::vector<uint32_t> per_object{3, 1};
  std::vector<uint64_t> objects{40, 1};
  auto made = scatter_gather::make(runs, per_object, objects, 100);
  ASSERT_TRUE(made) << made.error().text;
  auto pieces = pieces_of(*made, 0);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].bytes, 16u);
  EXPECT_EQ(pieces[1].region_offset, 24u);
  EXPECT_EQ(pieces[1].object_offset, 16u);
  EXPECT_EQ(pieces[2].region_offset, 40u);
  EXPECT_EQ(pieces[2].bytes, 16u);
  EXPECT_EQ(made->count(0).bytes, 40u);
  EXPECT_EQ(made->count(1).bytes, 1u);
}

TEST(ObjectRuns, AreTheSameHoweverManyAreCheckedAtATime) {
  std::vector<region_run> runs{{10, 5, 100, 3}, {1000, 7, 0, 1}, {0, 10, 0, 1}, {50, 1, 2, 4}, {70, 6, 0, 1}};
  std::vector<uint32_t> per_object{2, 1, 2};
  std::vector<uint64_t> sizes{22, 10, 10};
  auto whole = scatter_gather::make(runs, per_object, sizes, 2000);
  ASSERT_TRUE(whole) << whole.error().text;
  for (size_t at_a_time = 1; at_a_time <= runs.size(); ++at_a_time) {
    scatter_gather_maker maker({runs, per_object, nullptr, sizes, 2000});
    size_t steps = 0;
    for (result<bool> done = false; !*done; ++steps) {
      done = maker.step(at_a_time);
      ASSERT_TRUE(done) << done.error().text;
    }
    EXPECT_GE(steps, runs.size() / at_a_time);
    auto made = maker.take();
    ASSERT_EQ(made.objects(), sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i)
      EXPECT_EQ(pieces_of(made, i).size(), pieces_of(*whole, i).size()) << i;
  }
}

TEST(ObjectRuns, HaveAsManyPiecesAsAreAllowed) {
  std::vector<region_run> runs{{0, 1, 2, 5}, {100, 1, 2, 5}};
  std::vector<uint64_t> sizes{5, 5};
  EXPECT_TRUE(*scatter_gather_maker({runs, {}, nullptr, sizes, 200, 10}).step());
  auto refused = scatter_gather_maker({runs, {}, nullptr, sizes, 200, 9}).step();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("at most 9 pieces"), std::string::npos) << refused.error().text;
}

TEST(ObjectRuns, BytesWithoutAPlaceAreInNoPiece) {
  std::vector<region_run> runs{
      {region_run::skipped, 30, 0, 1}, {0, 10, 100, 2}, {region_run::skipped, 5, 0, 1},
      {region_run::skipped, 7, 0, 1},  {10, 8, 0, 1},   {region_run::skipped, 40, 0, 1}};
  std::vector<uint32_t> per_object{5, 1};
  std::vector<uint64_t> sizes{70, 40};
  auto made = scatter_gather::make(runs, per_object, sizes, 1000);
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_TRUE(made->skips());
  EXPECT_EQ(made->count(0).bytes, 28u);
  EXPECT_EQ(made->count(0).pieces, 3u);
  std::vector<std::tuple<uint64_t, uint64_t, uint64_t>> pieces;
  auto cursor = made->pieces(0);
  while (auto piece = cursor.next())
    pieces.emplace_back(piece->object_offset, piece->region_offset, piece->bytes);
  EXPECT_EQ(pieces,
            (std::vector<std::tuple<uint64_t, uint64_t, uint64_t>>{{30, 0, 10}, {40, 100, 10}, {62, 10, 8}}));
  EXPECT_FALSE(made->pieces(1).next());
  EXPECT_EQ(made->count(1).bytes, 0u);
  EXPECT_FALSE(scatter_gather::make(std::vector<region_run>{{0, 10, 0, 1}}, {}, std::vector<uint64_t>{10}, 10)
                   ->skips());
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
        bad_case{"overflow of the offset", {{UINT64_MAX - 1, 1, 0, 1}}, {}, {1}, "exceeds the region"},
        bad_case{"several skipped pieces", {{UINT64_MAX, 1, 0, 2}}, {}, {2}, "exceeds the region"},
        bad_case{"no pieces", {{0, 10, 0, 0}}, {}, {10}, "empty"},
        bad_case{"no bytes", {{0, 0, 0, 4}}, {}, {10}, "empty"},
        bad_case{"too short", {{0, 10, 0, 1}}, {}, {20}, "hold 10 bytes"},
        bad_case{"too few runs", {{0, 10, 0, 1}}, {}, {10, 10}, "has no run"},
        bad_case{"too many runs", {{0, 10, 0, 1}, {10, 10, 0, 1}}, {}, {10}, "2 runs were given"},
        bad_case{"counts of other objects", {{0, 10, 0, 1}}, {1, 1}, {10}, "runs_per_object"}));

} // namespace
} // namespace terrace
