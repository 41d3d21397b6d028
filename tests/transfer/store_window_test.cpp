#include "transfer/store_window.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace store_window_test {

constexpr uint64_t payload = 4096;
constexpr uint64_t physical = 8192;

using state = acquired_state;
using rest = store_window::rest;
using next = store_window::next;

struct StoreWindow : ::testing::Test {
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create({.name = "test", .bytes = 1 << 20, .segment_bytes = 1 << 20}).value();
  store_window window{2, chain(12, 4, payload)}; ///< objects 2 to 5 of a request

  static acquire_answer acquired(std::vector<acquired_state> states) {
    acquire_answer made;
    made.places.resize(states.size());
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i] == state::reserved || states[i] == state::held)
        made.places[i] = {object_id{i + 1}, i * physical, payload, physical};
    made.states = std::move(states);
    return made;
  }
};

TEST_F(StoreWindow, AsksForSpaceAndCreditForAllItsObjects) {
  EXPECT_EQ(window.physical_bytes(), 4 * physical_bytes_for(payload));
  auto request = window.space(nullptr);
  EXPECT_EQ(request.objects, window.objects());
  EXPECT_TRUE(request.note_access);
  EXPECT_TRUE(request.may_fill.empty());
  EXPECT_FALSE(request.may_come_again);
  EXPECT_TRUE(window.space(nullptr, true).may_come_again) << "with a smaller window";
}

TEST_F(StoreWindow, OnlyTheFirstRoundIsAnAccess) {
  auto of_inference = context();
  of_inference->inference = 3;
  EXPECT_FALSE(window.space(of_inference).note_access);
  EXPECT_EQ(window.after_round(rest::evicted), next::again);
  EXPECT_FALSE(window.space(nullptr).note_access);
}

TEST_F(StoreWindow, WaitsForOthersBeforeItLooksForWhatWasEvicted) {
  EXPECT_EQ(window.rest_of(acquired({state::held, state::reserved, state::held, state::held})),
            rest::nothing);
  EXPECT_EQ(window.rest_of(acquired({state::held, state::absent, state::held, state::held})), rest::evicted);
  EXPECT_EQ(window.space(nullptr).may_fill, (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(window.rest_of(acquired({state::pending, state::absent, state::held, state::held})),
            rest::written_by_others);
}

TEST_F(StoreWindow, IsDoneWhenNothingRemainsOrTheRestKeepsLeaving) {
  EXPECT_EQ(window.after_round(rest::nothing), next::done);
  for (int round = 0; round < store_window::attempts_max; ++round)
    EXPECT_EQ(window.after_round(rest::evicted), next::again);
  EXPECT_EQ(window.after_round(rest::evicted), next::done);
}

TEST_F(StoreWindow, GivesUpIfOthersKeepAbandoningWhatItWaitsFor) {
  EXPECT_EQ(window.after_round(rest::written_by_others), next::await);
  for (int round = 0; round < store_window::attempts_max; ++round)
    EXPECT_EQ(window.after_wait(true), next::again);
  EXPECT_EQ(window.after_wait(true), next::give_up);
}

TEST_F(StoreWindow, IsDoneIfWhatOthersWriteKeepsLeaving) {
  for (int round = 0; round < store_window::attempts_max; ++round)
    EXPECT_EQ(window.after_wait(false), next::again);
  EXPECT_EQ(window.after_wait(false), next::done);
}

TEST_F(StoreWindow, CopiesItsPartOfTheRegionIntoTheReservedPlaces) {
  std::vector<uint64_t> sizes(6, payload);
  std::vector<region_run> list;
  for (uint64_t i = 0; i < 6; ++i)
    list.push_back({i * payload, payload, payload, 1});
  auto runs =
      std::make_shared<const scatter_gather>(scatter_gather::make(list, {}, sizes, 6 * payload).value());
  auto place = acquired({state::held, state::reserved, state::held, state::reserved});
  EXPECT_TRUE(store_window::any_reserved(place));
  auto copy = window.copy(place, runs, *memory, true);
  ASSERT_EQ(copy.objects.size(), 2u);
  EXPECT_EQ(copy.objects[0].number, 3u);
  EXPECT_EQ(copy.objects[0].inside, memory->at(physical) + object_header_bytes);
  EXPECT_EQ(copy.runs, runs);
  EXPECT_TRUE(copy.checksums);
  EXPECT_FALSE(window.copy(place, runs, *memory, false).checksums);
}

TEST_F(StoreWindow, PublishesWhatWasCopied) {
  uint64_t bytes = 0;
  auto complete =
      window.publication(acquired({state::held, state::reserved, state::held, state::reserved}), bytes);
  EXPECT_EQ(bytes, 2 * payload);
  ASSERT_EQ(complete.places.size(), 4u);
  EXPECT_FALSE(complete.places[0].present());
  EXPECT_TRUE(complete.places[1].present());
}

TEST_F(StoreWindow, ChecksumsAreParallelToTheObjects) {
  auto place = acquired({state::held, state::reserved, state::held, state::reserved});
  EXPECT_EQ(store_window::checksums(place, {7, 8}), (std::vector<uint64_t>{0, 7, 0, 8}));
  EXPECT_TRUE(store_window::checksums(place, {}).empty());
}

TEST_F(StoreWindow, AChunkIsStoredIfAnyOfItsObjectsWasCopied) {
  uint64_t bytes = 0;
  window.publication(acquired({state::held, state::held, state::held, state::reserved}), bytes);
  auto chunks = window.count(2);
  EXPECT_EQ(chunks.stored, 1u);
  EXPECT_EQ(chunks.present, 1u);
}

} // namespace store_window_test
