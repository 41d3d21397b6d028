
#include "tests/tier/objects.hpp"
#include "transfer/load_plan.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

struct some_page final : device_memory {};

/// Four chunks of three pools, of which a lease holds the first chunk in host memory and the others on disk.
struct LayerOrder : ::testing::Test {
  load_subject of;

  LayerOrder() {
    of.objects = chain(1, 12, 4096);
    of.objects_per_chunk = 3;
    of.generations = {std::make_shared<some_page>(), 0, 3, 1};
    of.leased = {{tier_kind::host, held({0, 1, 2})}, {tier_kind::disk, held({3, 4, 5, 6, 7, 8, 9, 10, 11})}};
  }
  static hold_ptr held(const std::vector<size_t>& has) {
    std::vector<object_place> places(12);
    for (size_t i : has)
      places[i].id = object_id{i + 1};
    return std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
  }
  static std::vector<uint64_t> ids(const load_subject& of, tier_kind tier) {
    std::vector<uint64_t> all;
    for (const object_place& each : held_in(of.leased, tier)->places())
      all.push_back(static_cast<uint64_t>(each.id));
    return all;
  }
};

TEST_F(LayerOrder, HasAllOfAPoolBeforeTheNext) {
  auto made = in_layer_order(of, 0, 4);
  EXPECT_EQ(made.objects_per_chunk, 1u);
  ASSERT_EQ(made.objects->size(), 12u);
  std::vector<size_t> numbers;
  for (size_t place = 0; place < 12; ++place) {
    numbers.push_back(made.order.number_of(place));
    EXPECT_EQ(made.objects->keys[place], of.objects->keys[numbers.back()]);
    EXPECT_EQ(made.order.pool_of(place), numbers.back() % 3);
    EXPECT_EQ(made.order.end_of_pool(place), (place / 4 + 1) * 4);
  }
  EXPECT_EQ(numbers, (std::vector<size_t>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  EXPECT_EQ(ids(made, tier_kind::host), (std::vector<uint64_t>{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(ids(made, tier_kind::disk), (std::vector<uint64_t>{0, 4, 7, 10, 0, 5, 8, 11, 0, 6, 9, 12}));
  EXPECT_NE(made.generations.page, nullptr);
}

TEST_F(LayerOrder, MayBeginBehindAPoolAndEndBeforeAChunk) {
  auto made = in_layer_order(of, 1, 2);
  ASSERT_EQ(made.objects->size(), 4u);
  std::vector<size_t> numbers;
  for (size_t place = 0; place < 4; ++place)
    numbers.push_back(made.order.number_of(place));
  EXPECT_EQ(numbers, (std::vector<size_t>{1, 4, 2, 5}));
  EXPECT_EQ(made.order.pool_of(2), 2u);
  EXPECT_EQ(ids(made, tier_kind::disk), (std::vector<uint64_t>{0, 5, 0, 6}));
  EXPECT_EQ(made.generations.page, nullptr) << "chunks are missing";
}

TEST_F(LayerOrder, IsForWhatALeaseHoldsBelowAndForStores) {
  of.runs = std::make_shared<const scatter_gather>();
  EXPECT_FALSE(of.by_layer()) << "nobody keeps what was leased";
  of.held_by = std::make_shared<int>();
  EXPECT_TRUE(of.by_layer());
  of.held_by = nullptr;
  of.leased.clear();
  EXPECT_FALSE(of.by_layer()) << "without a lease nobody knows that the chunks are there";
  of.from_store = true;
  EXPECT_TRUE(of.by_layer());
  of.read_by = read_limit::clock::now();
  EXPECT_FALSE(of.by_layer()) << "it may end early, and then with whole chunks";
  of.read_by = read_limit::max();
  of.generations = {};
  EXPECT_FALSE(of.by_layer()) << "nobody waits for layers";
}

TEST_F(LayerOrder, KeepsItsPlacesAfterTheSubject) {
  auto made = in_layer_order(of, 0, 4);
  of = {};
  EXPECT_EQ(ids(made, tier_kind::disk)[1], 4u);
}

} // namespace
