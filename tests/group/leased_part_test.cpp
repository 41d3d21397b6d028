#include "group/leased_part.hpp"

#include "index/chunk_layout.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace leased_part_test {

space_ptr space() {
  auto spec = terrace::test::mixed_space();
  return std::make_shared<const opened_space>(opened_space{space_id{9}, spec, spec.fingerprint()});
}

tier_holds whole_part(const lease_ptr& from, const transfer_scope& scope, uint16_t rank) {
  leased_part part(from, scope, rank);
  while (!part.step())
    ;
  return part.take();
}

TEST(LeasedPart, IsMadeInSteps) {
  constexpr size_t chunks = leased_part::step_objects + 1;
  auto held = std::make_shared<lease>();
  held->space = space();
  held->held.push_back({tier_kind::host, std::make_shared<object_hold>(
                                             release_sink_ptr{}, std::vector<object_place>(5 * chunks))});
  leased_part part(held, {{0, chunks}, {0}}, 1);
  EXPECT_FALSE(part.step());
  EXPECT_TRUE(part.step());
  EXPECT_EQ(part.take().front().held->places().size(), chunks);
}

TEST(LeasedPart, PicksTheObjectsOfOneRankOutOfTheLease) {
  auto in = space();
  chunk_layout layout(in->spec);
  // kv has an object on each of two ranks, shared has one, state has two
  ASSERT_EQ(layout.objects_per_chunk(), 5u);
  std::vector<object_place> places;
  for (uint64_t n = 0; n < 15; ++n)
    places.push_back({static_cast<object_id>(n + 1), n * 4096, 1, 4096});
  auto held = std::make_shared<lease>();
  held->space = in;
  EXPECT_TRUE(whole_part(held, {{0, 3}, {0, 1, 2}}, 1).empty());
  held->held.push_back({tier_kind::disk, std::make_shared<object_hold>(release_sink_ptr{}, places)});
  auto part = whole_part(held, {{1, 2}, {0, 1, 2}}, 1).front().held;
  ASSERT_NE(part, nullptr);
  std::vector<uint64_t> ids;
  for (const object_place& place : part->places())
    ids.push_back(static_cast<uint64_t>(place.id) - 1);
  EXPECT_EQ(ids, (std::vector<uint64_t>{6, 7, 9, 11, 12, 14}));
  EXPECT_EQ(whole_part(held, {{1, 2}, {1}}, 1).front().held->places().size(), 2u);
}

TEST(LeasedPart, ThePartKeepsTheLease) {
  auto held = std::make_shared<lease>();
  held->space = space();
  held->held.push_back(
      {tier_kind::disk, std::make_shared<object_hold>(release_sink_ptr{}, std::vector<object_place>(5))});
  std::weak_ptr<lease> watched = held;
  auto part = whole_part(held, {{0, 1}, {0, 1, 2}}, 0).front().held;
  held.reset();
  EXPECT_FALSE(watched.expired());
  part.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(LeasedPart, BeginsAtATokenOfThePrompt) {
  lease from;
  from.space = space();
  from.first_token = 640;
  EXPECT_EQ(token_of(from, {3, 1}), 640u + 3 * from.space->spec.chunk_tokens);
}

} // namespace leased_part_test
