#include "transfer/below_reading.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t payload = 4096;
constexpr uint64_t physical = 8192;

using state = acquired_state;
using outcome = move_outcome;

struct BelowReading : ::testing::Test {
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create({.name = "test", .bytes = 1 << 20, .segment_bytes = 1 << 20}).value();

  /// What a tier holds of four objects; the ids of its objects begin at `first_id`.
  static tier_hold hold(tier_kind tier, uint64_t first_id, std::vector<size_t> has) {
    std::vector<object_place> places(4);
    for (size_t i : has)
      places[i] = {object_id{first_id + i}, i * physical, payload, physical};
    return {tier, std::make_shared<object_hold>(release_sink_ptr{}, std::move(places))};
  }

  /// The disk has objects 0 and 1, the remote tier 1 and 2; nobody has 3.
  below_reading reading{chain(10, 4, payload),
                        {hold(tier_kind::disk, 100, {0, 1}), hold(tier_kind::remote, 200, {1, 2})}};

  static acquire_answer acquired(std::vector<acquired_state> states) {
    acquire_answer made;
    made.places.resize(states.size());
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i] == state::reserved || states[i] == state::held)
        made.places[i] = {object_id{300 + i}, i * physical, payload, physical};
    made.states = std::move(states);
    return made;
  }
};

} // namespace

TEST_F(BelowReading, KnowsWhatTiersBelowHave) {
  EXPECT_TRUE(reading.has(0));
  EXPECT_TRUE(reading.has(2));
  EXPECT_FALSE(reading.has(3));
}

TEST_F(BelowReading, ReadsEachObjectFromTheFastestTier) {
  reading.take_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  ASSERT_EQ(reading.parts().size(), 2u);
  EXPECT_EQ(reading.parts()[0].tier, tier_kind::disk);
  EXPECT_EQ(reading.parts()[0].objects, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(reading.parts()[1].objects, std::vector<size_t>{2});
  EXPECT_EQ(reading.first_left(), SIZE_MAX);
  EXPECT_FALSE(reading.others_write());
  auto request = reading.read(reading.parts()[0], nullptr, context(), *memory);
  ASSERT_EQ(request.objects.size(), 2u);
  EXPECT_EQ(request.objects[1].key, key_of(11));
  EXPECT_EQ(request.objects[1].place.id, object_id{101});
  EXPECT_EQ(request.objects[1].memory, memory->at(physical));
  EXPECT_EQ(request.owners.size(), 2u);
}

TEST_F(BelowReading, ATierWithoutObjectsHasNoPart) {
  reading.take_space(acquired({state::held, state::held, state::reserved, state::absent}));
  ASSERT_EQ(reading.parts().size(), 1u);
  EXPECT_EQ(reading.parts()[0].tier, tier_kind::remote);
}

TEST_F(BelowReading, NotesWhatWasEvictedOrIsWrittenByOthers) {
  reading.take_space(acquired({state::pending, state::absent, state::absent, state::absent}));
  EXPECT_TRUE(reading.empty());
  EXPECT_TRUE(reading.others_write());
  EXPECT_EQ(reading.first_left(), 1u); // the disk has it, and it was in host memory before
}

TEST_F(BelowReading, RemovesWhatCouldNotBeRead) {
  reading.take_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  auto lost = reading.take_outcomes(0, {outcome::failed, outcome::done});
  EXPECT_EQ(lost.objects, std::vector<size_t>{0});
  EXPECT_EQ(lost.damaged.ids, std::vector{object_id{100}});
  EXPECT_TRUE(lost.stalled.ids.empty());
  lost = reading.take_outcomes(1, {outcome::stalled});
  EXPECT_TRUE(lost.damaged.ids.empty());
  EXPECT_EQ(lost.stalled.ids, std::vector{object_id{302}}); // of the memory that is still written
  EXPECT_EQ(reading.publication().places.size(), 1u);
}

TEST_F(BelowReading, ObjectsOfADeviceOutOfServiceAreNotDamaged) {
  reading.take_space(acquired({state::reserved, state::absent, state::absent, state::absent}));
  auto lost = reading.take_outcomes(0, {outcome::away});
  EXPECT_EQ(lost.objects.size(), 1u);
  EXPECT_TRUE(lost.damaged.ids.empty());
  EXPECT_TRUE(reading.empty());
}

TEST_F(BelowReading, PublishesWhatIsStillPublishedBelow) {
  reading.take_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  reading.take_outcomes(0, {outcome::done, outcome::done});
  EXPECT_EQ(reading.confirmation(reading.parts()[0]).ids, (std::vector{object_id{100}, object_id{101}}));
  reading.take_confirmed(0, {false, true}); // the first was cleared
  reading.take_confirmed(1, {true});
  auto places = reading.publication().places;
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].id, object_id{301});
  EXPECT_EQ(places[1].id, object_id{302});
}
