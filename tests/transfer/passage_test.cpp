#include "transfer/passage.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <utility>

using namespace terrace;
using namespace terrace::test;

namespace passage_test {

constexpr uint64_t payload = 4096;
constexpr uint64_t physical = 8192;

using state = acquired_state;
using outcome = move_outcome;

struct Passage : ::testing::Test {
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
  passage pass{
      plan(direction::into_host, {hold(tier_kind::disk, 100, {0, 1}), hold(tier_kind::remote, 200, {1, 2})})};

  passage::plan plan(direction way, tier_holds from) const {
    passage::plan made;
    made.objects = chain(10, 4, payload);
    made.from = std::move(from);
    made.way = way;
    made.memory = memory.get();
    return made;
  }

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

TEST_F(Passage, KnowsWhatTiersBelowHave) {
  EXPECT_TRUE(pass.has(0));
  EXPECT_TRUE(pass.has(2));
  EXPECT_FALSE(pass.has(3));
}

TEST_F(Passage, ReadsEachObjectFromTheFastestTier) {
  pass.add_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  ASSERT_EQ(pass.parts().size(), 2u);
  EXPECT_EQ(pass.parts()[0].tier, tier_kind::disk);
  EXPECT_EQ(pass.parts()[0].objects, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(pass.parts()[1].objects, std::vector<size_t>{2});
  EXPECT_EQ(pass.first_left(), SIZE_MAX);
  EXPECT_FALSE(pass.others_write());
  auto request = pass.read(pass.parts()[0]);
  ASSERT_EQ(request.objects.size(), 2u);
  EXPECT_EQ(request.objects[1].key, key_of(11));
  EXPECT_EQ(request.objects[1].place.id, object_id{101});
  EXPECT_EQ(request.objects[1].memory, memory->at(physical));
  EXPECT_EQ(request.owners.size(), 1u) << "what it reads, and the space";
}

TEST_F(Passage, ATierWithoutObjectsHasNoPart) {
  pass.add_space(acquired({state::held, state::held, state::reserved, state::absent}));
  ASSERT_EQ(pass.parts().size(), 1u);
  EXPECT_EQ(pass.parts()[0].tier, tier_kind::remote);
}

TEST_F(Passage, NotesWhatWasEvictedOrIsWrittenByOthers) {
  pass.add_space(acquired({state::pending, state::absent, state::absent, state::absent}));
  EXPECT_TRUE(pass.empty());
  EXPECT_TRUE(pass.others_write());
  EXPECT_EQ(pass.first_left(), 1u); // the disk has it, and it was in host memory before
}

TEST_F(Passage, RemovesWhatCouldNotBeRead) {
  pass.add_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  auto lost = pass.add_outcomes(0, {outcome::failed, outcome::done});
  EXPECT_EQ(pass.ended().lost, std::vector<size_t>{0});
  EXPECT_FALSE(pass.ended().stalled);
  EXPECT_EQ(lost.damaged.ids, std::vector{object_id{100}});
  EXPECT_TRUE(lost.stalled.ids.empty());
  lost = pass.add_outcomes(1, {outcome::stalled});
  EXPECT_TRUE(lost.damaged.ids.empty());
  EXPECT_EQ(lost.stalled.ids, std::vector{object_id{302}}); // of the memory that is still written
  EXPECT_TRUE(pass.ended().stalled);
  EXPECT_EQ(pass.ended().lost, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(pass.publication().places.size(), 1u);
}

TEST_F(Passage, WhatTheDeviceHasAlreadyArrivesWithoutItsBytes) {
  pass.add_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  pass.add_outcomes(0, {outcome::present, outcome::done});
  EXPECT_TRUE(pass.ended().lost.empty());
  EXPECT_EQ(pass.publication().places.size(), 3U) << "of the other part nothing is known yet";
  EXPECT_EQ(pass.ended().present_bytes, pass.acquired().places[0].payload_bytes);
  EXPECT_NE(pass.ended().present_bytes, 0U);
}

TEST_F(Passage, WhatIsLateIsNeitherReadNorLost) {
  pass.add_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  auto told = pass.add_outcomes(0, {outcome::done, outcome::late});
  EXPECT_TRUE(pass.ended().late);
  EXPECT_TRUE(pass.ended().lost.empty());
  EXPECT_TRUE(told.damaged.ids.empty()) << "it is intact where it comes from";
  EXPECT_EQ(told.stalled.ids, std::vector{object_id{301}}) << "its memory is still written";
  pass.add_outcomes(1, {outcome::done});
  EXPECT_EQ(pass.objects(), (std::vector<size_t>{0, 2}));
}

TEST_F(Passage, TheMoverIsToldHowLongToWait) {
  auto planned = plan(direction::into_host, {hold(tier_kind::remote, 100, {0})});
  planned.read_by = read_limit(std::chrono::seconds(7));
  passage in(planned);
  in.add_space(acquired({state::reserved, state::absent, state::absent, state::absent}));
  EXPECT_EQ(in.read(in.parts()[0]).read_by, planned.read_by);
}

TEST_F(Passage, ObjectsOfADeviceOutOfServiceAreNotDamaged) {
  pass.add_space(acquired({state::reserved, state::absent, state::absent, state::absent}));
  auto lost = pass.add_outcomes(0, {outcome::away});
  EXPECT_EQ(pass.ended().lost.size(), 1u);
  EXPECT_EQ(pass.ended().away, 1u);
  EXPECT_TRUE(lost.damaged.ids.empty());
  EXPECT_TRUE(pass.empty());
}

TEST_F(Passage, PublishesWhatIsStillPublishedBelow) {
  pass.add_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  pass.add_outcomes(0, {outcome::done, outcome::done});
  EXPECT_EQ(pass.confirmation(pass.parts()[0]).ids, (std::vector{object_id{100}, object_id{101}}));
  pass.add_confirmed(0, {false, true}); // the first was cleared
  pass.add_confirmed(1, {true});
  auto places = pass.publication().places;
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].id, object_id{301});
  EXPECT_EQ(places[1].id, object_id{302});
}

TEST_F(Passage, WithoutSpaceNothingMoves) {
  acquire_answer refused;
  refused.failure = {errc::no_space, "full"};
  EXPECT_FALSE(pass.add_space(std::move(refused)));
  EXPECT_EQ(pass.refused().code, errc::no_space);
  EXPECT_TRUE(pass.empty());
  passage other(pass.planned());
  EXPECT_TRUE(other.add_space(acquired({state::reserved, state::absent, state::absent, state::absent})));
  EXPECT_EQ(other.refused().code, errc::ok);
}

TEST_F(Passage, WhatNoTierHasIsNotMovedThoughThereIsSpace) {
  pass.add_space(acquired({state::absent, state::absent, state::reserved, state::reserved}));
  EXPECT_EQ(pass.objects(), std::vector<size_t>{2});
  EXPECT_EQ(pass.size(), 1u);
}

TEST_F(Passage, CountsThePayloadOfAPart) {
  pass.add_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  EXPECT_EQ(pass.payload_bytes(pass.parts()[0]), 2 * payload);
  pass.add_outcomes(0, {outcome::failed, outcome::done});
  EXPECT_EQ(pass.payload_bytes(pass.parts()[0]), payload);
}

TEST_F(Passage, PublishesAsItIsPlanned) {
  auto planned = plan(direction::into_host, {hold(tier_kind::disk, 100, {0})});
  planned.hold = true;
  planned.inference = 7;
  passage one(planned);
  one.add_space(acquired({state::reserved, state::absent, state::absent, state::absent}));
  EXPECT_TRUE(one.publication().hold);
  EXPECT_EQ(one.publication().inference, 7u);
  EXPECT_FALSE(pass.publication().hold);
  EXPECT_TRUE(one.arrived());
  bool keeps = false;
  one.on_arrival([&keeps] { return keeps; });
  EXPECT_FALSE(one.arrived()) << "it passes through";
}

TEST_F(Passage, OutOfHostMemoryWritesFromTheHeldPlacesToTheReservedOnes) {
  auto planned = plan(direction::out_of_host, {hold(tier_kind::host, 100, {0, 1, 2})});
  planned.context = context();
  planned.checksums = {5, 6, 7, 8};
  passage out(planned);
  out.add_space(acquired({state::absent, state::reserved, state::held, state::absent}));
  auto write = out.write(out.parts()[0]);
  EXPECT_EQ(write.context, planned.context);
  ASSERT_EQ(write.objects.size(), 1u);
  EXPECT_EQ(write.objects[0].key, key_of(11));
  EXPECT_EQ(write.objects[0].place.id, object_id{301});
  EXPECT_EQ(write.objects[0].memory, memory->at(physical));
  EXPECT_EQ(write.objects[0].checksum, 6u);
}

TEST_F(Passage, OutOfHostMemoryNobodyIsToldOfWhatWasNotWritten) {
  passage out(plan(direction::out_of_host, {hold(tier_kind::host, 100, {0, 1, 2})}));
  out.add_space(acquired({state::reserved, state::reserved, state::reserved, state::absent}));
  auto told = out.add_outcomes(0, {outcome::failed, outcome::stalled, outcome::away});
  EXPECT_TRUE(told.damaged.ids.empty()) << "the objects of host memory are intact";
  EXPECT_TRUE(told.stalled.ids.empty())
      << "the device reads them there, and what is reserved is on the device";
  EXPECT_EQ(out.ended().lost.size(), 3u);
  EXPECT_EQ(out.ended().away, 1u);
  EXPECT_TRUE(out.ended().stalled);
}

TEST_F(Passage, OutOfHostMemoryWhatWasClearedIsNotWritten) {
  passage out(plan(direction::out_of_host, {hold(tier_kind::host, 100, {0, 1, 2})}));
  out.add_space(acquired({state::reserved, state::reserved, state::absent, state::absent}));
  EXPECT_EQ(out.confirmation(out.parts()[0]).ids, (std::vector{object_id{100}, object_id{101}}));
  out.add_confirmed(0, {false, true});
  auto write = out.write(out.parts()[0]);
  ASSERT_EQ(write.objects.size(), 1u);
  EXPECT_EQ(write.objects[0].key, key_of(11));
}

// A copier answers before it lets go of the bytes: a check that begins in between must see work in progress.
TEST_F(Passage, IsWorkInProgressUntilItsBytesAreLetGo) {
  uint64_t before = work_mark::now().in_progress, then = 0;
  auto note_end = [&then](object_reservation* ended) {
    then = work_mark::now().in_progress;
    delete ended;
  };
  std::vector<keep_alive> owners;
  {
    auto space = acquired({state::reserved, state::absent, state::absent, state::absent});
    space.reserved = reservation_ptr(new object_reservation(nullptr, {}), note_end);
    passage out(plan(direction::out_of_host, {hold(tier_kind::host, 100, {0})}));
    out.add_space(std::move(space));
    owners = out.write(out.parts()[0]).owners;
  }
  EXPECT_EQ(work_mark::now().in_progress, before + 1);
  owners.clear();
  EXPECT_EQ(then, before + 1) << "the bytes first";
  EXPECT_EQ(work_mark::now().in_progress, before);
}

} // namespace passage_test
