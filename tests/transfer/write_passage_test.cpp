#include "transfer/write_passage.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <utility>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t payload = 4096;
const uint64_t physical = physical_bytes_for(payload);

struct WritePassage : ::testing::Test {
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create({.name = "test", .bytes = 1 << 20, .segment_bytes = 1 << 20}).value();

  /// Objects 1, 2, ...; those whose number is in `missing` are not held.
  write_passage passage(size_t count, std::vector<size_t> missing = {}) {
    std::vector<object_place> places(count);
    for (size_t i = 0; i < count; ++i)
      places[i] = {object_id{100 + i}, i * physical, payload, physical};
    for (size_t i : missing)
      places[i] = {};
    write_through_notice notice;
    notice.objects = chain(1, count, payload);
    notice.held = std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
    return write_passage(std::move(notice));
  }

  static object_bitmap bits(size_t size, std::vector<size_t> set) {
    object_bitmap made(size);
    for (size_t i : set)
      made.set(i);
    return made;
  }

  static acquire_answer reserved(std::vector<acquired_state> states) {
    acquire_answer made;
    made.places.resize(states.size());
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i] == acquired_state::reserved)
        made.places[i] = {object_id{200 + i}, i * physical, payload, physical};
    made.states = std::move(states);
    return made;
  }
};

using state = acquired_state;

} // namespace

TEST_F(WritePassage, WantsWhatIsHeldInHostMemory) {
  auto pass = passage(3, {1});
  EXPECT_EQ(pass.bytes(), 3 * payload);
  EXPECT_EQ(pass.space().may_fill, (std::vector<bool>{true, false, true}));
  EXPECT_FALSE(pass.space().may_wait);
  EXPECT_FALSE(passage(1, {0}).wants_any());
}

TEST_F(WritePassage, RefusesEverythingForATierOutOfService) {
  auto pass = passage(3, {1});
  EXPECT_EQ(pass.refuse_all(), 2u);
  EXPECT_FALSE(pass.wants_any());
}

TEST_F(WritePassage, OmitsWhatTheTierHas) {
  auto pass = passage(3);
  pass.omit_present(bits(3, {0, 2}));
  EXPECT_EQ(pass.space().may_fill, (std::vector<bool>{false, true, false}));
  pass.omit_present(bits(3, {1}));
  EXPECT_FALSE(pass.wants_any());
}

TEST_F(WritePassage, AsksForAdmissionOfWhatWouldEvictOthers) {
  auto pass = passage(4);
  pass.omit_present(bits(4, {0}));
  auto request = pass.admission(tier_kind::disk, admission_rule::beats_victim, physical + 1);
  ASSERT_EQ(request.entries.size(), 2u); // the second object fits into the room
  EXPECT_EQ(request.tier, tier_kind::disk);
  EXPECT_EQ(request.rule, admission_rule::beats_victim);
  EXPECT_EQ(request.entries[0].bytes, physical);
  EXPECT_EQ(pass.admitted(1), 1u);
  EXPECT_EQ(pass.space().may_fill, (std::vector<bool>{false, true, true, false}));
}

TEST_F(WritePassage, AsksForNothingIfEverythingFits) {
  auto pass = passage(2);
  EXPECT_TRUE(pass.admission(tier_kind::disk, admission_rule::beats_victim, 2 * physical).entries.empty());
  EXPECT_EQ(pass.admitted(0), 0u);
  EXPECT_TRUE(pass.wants_any());
}

TEST_F(WritePassage, ObjectsAfterARefusedOneAreRefused) {
  auto pass = passage(3);
  pass.admission(tier_kind::disk, admission_rule::seen_twice, 0);
  EXPECT_EQ(pass.admitted(0), 3u);
  EXPECT_FALSE(pass.wants_any());
}

TEST_F(WritePassage, EverythingIsAdmittedIfAsManyAreAsWereAsked) {
  auto pass = passage(3);
  pass.admission(tier_kind::disk, admission_rule::seen_twice, 0);
  EXPECT_EQ(pass.admitted(3), 0u);
  EXPECT_EQ(pass.space().may_fill, (std::vector<bool>{true, true, true}));
}

TEST_F(WritePassage, PaysUntilTheBudgetIsUsedUp) {
  write_budget::time_point now{};
  write_budget budget(24 * 2 * physical, now); // two objects an hour
  auto pass = passage(4, {0});
  EXPECT_EQ(pass.pay(budget, now), 1u);
  EXPECT_EQ(pass.space().may_fill, (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(budget.left(now), 0);
}

TEST_F(WritePassage, ReturnsTheBytesOfObjectsWithoutSpace) {
  write_budget::time_point now{};
  write_budget budget(24 * 4 * physical, now);
  auto pass = passage(2);
  EXPECT_EQ(pass.pay(budget, now), 0u);
  pass.take_space(reserved({state::held, state::reserved}), *memory); // another request wrote the first
  pass.return_unspent(budget);
  EXPECT_EQ(budget.left(now), static_cast<int64_t>(3 * physical));
}

TEST_F(WritePassage, WritesWhatGotSpaceFromHostMemory) {
  auto pass = passage(3, {2});
  pass.take_space(reserved({state::absent, state::reserved, state::reserved}), *memory);
  ASSERT_EQ(pass.to_write(), 1u); // the third is not in host memory
  EXPECT_EQ(pass.confirmation().ids, std::vector{object_id{101}});
  auto work = context();
  auto write = pass.write(nullptr, work);
  EXPECT_EQ(write.context, work);
  ASSERT_EQ(write.objects.size(), 1u);
  EXPECT_EQ(write.objects[0].key, key_of(2));
  EXPECT_EQ(write.objects[0].place.id, object_id{201});
  EXPECT_EQ(write.objects[0].memory, memory->at(physical));
  EXPECT_FALSE(write.objects[0].checksum);
}

// A copier answers before it lets go of the bytes: a check that begins in between must see work in progress.
TEST_F(WritePassage, IsWorkInProgressUntilItsBytesAreLetGo) {
  uint64_t before = work_mark::now().in_progress, then = 0;
  auto note_end = [&then](object_reservation* ended) {
    then = work_mark::now().in_progress;
    delete ended;
  };
  reservation_ptr space(new object_reservation(nullptr, {}), note_end);
  std::vector<keep_alive> owners;
  {
    auto pass = passage(1);
    pass.take_space(reserved({state::reserved}), *memory);
    owners = pass.write(std::exchange(space, nullptr), nullptr).owners;
    pass.end();
  }
  EXPECT_EQ(work_mark::now().in_progress, before + 1);
  owners.clear();
  EXPECT_EQ(then, before + 1) << "the bytes first";
  EXPECT_EQ(work_mark::now().in_progress, before);
}

TEST_F(WritePassage, IntoHostMemoryReadsFromTheTierAboveIntoWhatIsReserved) {
  std::vector<object_place> above(3);
  for (size_t i = 0; i < 3; ++i)
    above[i] = {object_id{100 + i}, (10 + i) * physical, payload, physical};
  write_through_notice notice;
  notice.objects = chain(1, 3, payload);
  notice.held = std::make_shared<object_hold>(release_sink_ptr{}, above);
  write_passage pass(std::move(notice), passage_way::into_host);
  pass.take_space(reserved({state::reserved, state::held, state::reserved}), *memory);
  EXPECT_EQ(pass.confirmation().ids, (std::vector{object_id{100}, object_id{102}})) << "of the tier above";
  auto read = pass.read(nullptr, nullptr);
  ASSERT_EQ(read.objects.size(), 2u);
  EXPECT_EQ(read.objects[1].key, key_of(3));
  EXPECT_EQ(read.objects[1].place.id, object_id{102});
  EXPECT_EQ(read.objects[1].place.offset, 12 * physical);
  EXPECT_EQ(read.objects[1].memory, memory->at(2 * physical));
  auto written = pass.written({move_outcome::failed, move_outcome::done});
  ASSERT_EQ(written.complete.places.size(), 1u);
  EXPECT_EQ(written.complete.places[0].id, object_id{202}) << "of host memory";
  EXPECT_EQ(written.failed, 1u);
  auto held = std::make_shared<object_hold>(release_sink_ptr{}, written.complete.places);
  auto onward = pass.onward(written, held);
  ASSERT_EQ(onward.held->places().size(), 3u);
  EXPECT_FALSE(onward.held->places()[0].present());
  EXPECT_FALSE(onward.held->places()[1].present());
  EXPECT_EQ(onward.held->places()[2].id, object_id{202});
  EXPECT_FALSE(onward.credit);
}

TEST_F(WritePassage, KnowsOfOthersThatWriteTheSame) {
  auto pass = passage(2);
  EXPECT_FALSE(pass.others_write());
  pass.take_space(reserved({state::reserved, state::pending}), *memory);
  EXPECT_TRUE(pass.others_write());
  EXPECT_EQ(pass.to_write(), 1u);
  EXPECT_EQ(pass.await_others().objects, pass.space().objects);
}

TEST_F(WritePassage, PassesOnTheChecksumsOfTheStore) {
  write_through_notice notice;
  notice.objects = chain(1, 2, payload);
  notice.held = std::make_shared<object_hold>(
      release_sink_ptr{}, std::vector<object_place>{{object_id{1}, 0, payload, physical},
                                                    {object_id{2}, physical, payload, physical}});
  notice.checksums = {7, 8};
  write_passage pass(std::move(notice));
  pass.take_space(reserved({state::absent, state::reserved}), *memory);
  EXPECT_EQ(pass.write(nullptr, nullptr).objects.at(0).checksum, 8u);
}

TEST_F(WritePassage, DropsWhatWasClearedMeanwhile) {
  auto pass = passage(2);
  pass.take_space(reserved({state::reserved, state::reserved}), *memory);
  pass.drop_cleared({false, true});
  ASSERT_EQ(pass.to_write(), 1u);
  EXPECT_EQ(pass.write(nullptr, nullptr).objects[0].key, key_of(2));
}

TEST_F(WritePassage, PublishesWhatWasWritten) {
  auto pass = passage(4);
  pass.take_space(reserved({state::reserved, state::reserved, state::reserved, state::reserved}), *memory);
  auto done =
      pass.written({move_outcome::done, move_outcome::away, move_outcome::failed, move_outcome::stalled});
  ASSERT_EQ(done.complete.places.size(), 1u);
  EXPECT_EQ(done.complete.places[0].id, object_id{200});
  EXPECT_EQ(done.bytes, payload);
  EXPECT_EQ(done.away, 1u);
  EXPECT_EQ(done.failed, 2u);
  EXPECT_TRUE(done.stalled);
}

TEST_F(WritePassage, ItsEndIsToldToWhoeverAsked) {
  write_through_notice notice;
  notice.objects = chain(1, 2, payload);
  notice.held = std::make_shared<object_hold>(
      release_sink_ptr{}, std::vector<object_place>{{object_id{1}, 0, payload, physical}, {}});
  struct counting_sink final : credit_sink {
    uint64_t returned = 0;
    void give_back(uint64_t bytes) override { returned += bytes; }
  };
  auto credits = std::make_shared<counting_sink>();
  notice.credit = std::make_shared<write_credit>(credits, payload);
  std::weak_ptr<object_hold> held = notice.held;
  uint64_t told = 0;
  notice.ended = [&](const demote_answer& answer) {
    told = answer.done.lost_in_all();
    EXPECT_TRUE(held.expired()) << "the hold ends first";
    EXPECT_EQ(credits->returned, payload) << "and another demotion may have the credit";
  };
  write_passage pass(std::move(notice));
  EXPECT_EQ(pass.wanted(), 1u);
  pass.told().done.lose(demotion_failure::degraded, pass.refuse_all());
  EXPECT_EQ(pass.wanted(), 0u);
  pass.end();
  EXPECT_EQ(told, 1u);
  pass.end(); // once
}
