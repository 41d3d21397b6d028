#include "transfer/write_plan.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <utility>

using namespace terrace;
using namespace terrace::test;

namespace write_plan_test {

constexpr uint64_t payload = 4096;
const uint64_t physical = physical_bytes_for(payload);

struct WritePlan : ::testing::Test {
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create({.name = "test", .bytes = 1 << 20, .segment_bytes = 1 << 20}).value();

  /// Objects 1, 2, ...; those whose number is in `missing` are not held.
  static write_plan make(size_t count, std::vector<size_t> missing = {}) {
    std::vector<object_place> places(count);
    for (size_t i = 0; i < count; ++i)
      places[i] = {object_id{100 + i}, i * physical, payload, physical};
    for (size_t i : missing)
      places[i] = {};
    write_through_notice notice;
    notice.objects = chain(1, count, payload);
    notice.held = std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
    return write_plan(std::move(notice));
  }

  passage::plan journey(const write_plan& plan) const {
    return plan.journey(tier_kind::host, direction::out_of_host, *memory, nullptr);
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

TEST_F(WritePlan, WantsWhatIsHeldInHostMemory) {
  auto plan = make(3, {1});
  EXPECT_EQ(plan.bytes(), 3 * payload);
  EXPECT_EQ(plan.space().may_fill, (std::vector<bool>{true, false, true}));
  EXPECT_FALSE(plan.space().may_wait);
  EXPECT_FALSE(make(1, {0}).wants_any());
}

TEST_F(WritePlan, RefusesEverythingForATierOutOfService) {
  auto plan = make(3, {1});
  EXPECT_EQ(plan.refuse_all(), 2u);
  EXPECT_FALSE(plan.wants_any());
  EXPECT_EQ(plan.take_refused(), plan.names_of({0, 2})) << "the other one was not there";
  EXPECT_TRUE(plan.take_refused().empty()) << "they are told once";
}

TEST_F(WritePlan, OmitsWhatTheTierHas) {
  auto plan = make(3);
  plan.omit_present(bits(3, {0, 2}));
  EXPECT_EQ(plan.space().may_fill, (std::vector<bool>{false, true, false}));
  plan.omit_present(bits(3, {1}));
  EXPECT_FALSE(plan.wants_any());
}

TEST_F(WritePlan, AsksForAdmissionOfWhatWouldEvictOthers) {
  auto plan = make(4);
  plan.omit_present(bits(4, {0}));
  auto request = plan.admission(tier_kind::disk, admission_rule::beats_victim, physical + 1);
  ASSERT_EQ(request.entries.size(), 2u); // the second object fits into the room
  EXPECT_EQ(request.tier, tier_kind::disk);
  EXPECT_EQ(request.rule, admission_rule::beats_victim);
  EXPECT_EQ(request.entries[0].bytes, physical);
  EXPECT_EQ(plan.admitted(1), 1u);
  EXPECT_EQ(plan.space().may_fill, (std::vector<bool>{false, true, true, false}));
}

TEST_F(WritePlan, AsksForNothingIfEverythingFits) {
  auto plan = make(2);
  EXPECT_TRUE(plan.admission(tier_kind::disk, admission_rule::beats_victim, 2 * physical).entries.empty());
  EXPECT_EQ(plan.admitted(0), 0u);
  EXPECT_TRUE(plan.wants_any());
}

TEST_F(WritePlan, ObjectsAfterARefusedOneAreRefused) {
  auto plan = make(3);
  plan.admission(tier_kind::disk, admission_rule::seen_twice, 0);
  EXPECT_EQ(plan.admitted(0), 3u);
  EXPECT_FALSE(plan.wants_any());
}

TEST_F(WritePlan, EverythingIsAdmittedIfAsManyAreAsWereAsked) {
  auto plan = make(3);
  plan.admission(tier_kind::disk, admission_rule::seen_twice, 0);
  EXPECT_EQ(plan.admitted(3), 0u);
  EXPECT_EQ(plan.space().may_fill, (std::vector<bool>{true, true, true}));
}

TEST_F(WritePlan, PaysUntilTheBudgetIsUsedUp) {
  write_budget::time_point now{};
  write_budget budget({.bytes_per_day = 24 * 2 * physical}, now); // two objects an hour
  auto plan = make(4, {0});
  EXPECT_EQ(plan.pay(budget, now), 1u);
  EXPECT_EQ(plan.take_refused(), plan.names_of({3}));
  EXPECT_EQ(plan.space().may_fill, (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(budget.left(now), 0);
}

TEST_F(WritePlan, ReturnsTheBytesOfObjectsWithoutSpace) {
  write_budget::time_point now{};
  write_budget budget({.bytes_per_day = 24 * 4 * physical}, now);
  auto plan = make(2);
  EXPECT_EQ(plan.pay(budget, now), 0u);
  passage pass(journey(plan));
  pass.add_space(reserved({state::held, state::reserved})); // another request wrote the first
  plan.add_passage(pass);
  plan.return_unspent(budget);
  EXPECT_EQ(budget.left(now), static_cast<int64_t>(3 * physical));
}

TEST_F(WritePlan, ItsPassageBringsWhatIsHeld) {
  write_through_notice notice;
  notice.objects = chain(1, 2, payload);
  notice.held = std::make_shared<object_hold>(
      release_sink_ptr{}, std::vector<object_place>{{object_id{1}, 0, payload, physical}, {}});
  notice.checksums = {7, 8};
  write_plan plan(std::move(notice));
  auto work = context();
  auto down = plan.journey(tier_kind::host, direction::out_of_host, *memory, work);
  EXPECT_EQ(down.context, work);
  EXPECT_EQ(down.checksums, (std::vector<uint64_t>{7, 8}));
  EXPECT_FALSE(down.hold);
  passage pass(down);
  EXPECT_TRUE(pass.has(0));
  EXPECT_FALSE(pass.has(1));
  EXPECT_TRUE(plan.journey(tier_kind::gpu, direction::into_host, *memory, work).hold)
      << "it goes on to tiers further down";
}

TEST_F(WritePlan, WhatArrivedInHostMemoryGoesOn) {
  auto plan = make(3);
  passage pass(plan.journey(tier_kind::gpu, direction::into_host, *memory, nullptr));
  pass.add_space(reserved({state::reserved, state::held, state::reserved}));
  pass.add_outcomes(0, {move_outcome::failed, move_outcome::done});
  pass.add_published(
      {.failure = {}, .held = std::make_shared<object_hold>(release_sink_ptr{}, pass.publication().places)});
  auto onward = plan.onward(pass);
  ASSERT_EQ(onward.held->places().size(), 3u);
  EXPECT_FALSE(onward.held->places()[0].present());
  EXPECT_FALSE(onward.held->places()[1].present());
  EXPECT_EQ(onward.held->places()[2].id, object_id{202});
  EXPECT_FALSE(onward.credit);
}

TEST_F(WritePlan, KnowsOfOthersThatWriteTheSame) {
  auto plan = make(2);
  EXPECT_FALSE(plan.others_write());
  passage pass(journey(plan));
  pass.add_space(reserved({state::reserved, state::pending}));
  plan.add_passage(pass);
  EXPECT_TRUE(plan.others_write());
  EXPECT_EQ(plan.await_others().objects, plan.space().objects);
}

TEST_F(WritePlan, ItsEndIsToldToWhoeverAsked) {
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
  write_plan plan(std::move(notice));
  EXPECT_EQ(plan.wanted(), 1u);
  plan.told().done.lose(refusal_reason::degraded, plan.refuse_all());
  EXPECT_EQ(plan.wanted(), 0u);
  plan.end();
  EXPECT_EQ(told, 1u);
  plan.end(); // once
}

} // namespace write_plan_test
