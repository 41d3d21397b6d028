// Which objects a prefetch brings, in which windows, and what it has delivered.
#include "transfer/prefetch_plan.hpp"

#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"
#include "tests/support/counters.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t window_bytes =
    2 * prefetch_plan::windows_max * physical_bytes_for(1 << 20); // two chunks each

prefetch_subject subject(space_spec spec, size_t chunks) {
  prefetch_subject of;
  auto in = std::make_shared<opened_space>();
  in->id = space_id{1};
  in->spec = std::move(spec);
  of.space = in;
  auto digests = std::make_shared<std::vector<digest>>();
  for (uint64_t n = 0; n < chunks; ++n)
    digests->push_back(key_of(n).chunk);
  of.chunks = digests;
  of.context = context();
  return of;
}

/// 'h', 'd' and '.': each object's tier.
prefix_plan plan_of(const space_spec& spec, const std::string& objects) {
  object_bitmap host(objects.size()), disk(objects.size());
  for (size_t i = 0; i < objects.size(); ++i)
    if (objects[i] != '.')
      (objects[i] == 'h' ? host : disk).set(i);
  auto chunks = static_cast<uint32_t>(objects.size() / chunk_layout(spec).objects_per_chunk());
  return make_prefix_plan(spec, {chunks, 0, UINT64_MAX}, {{tier_kind::host, host}, {tier_kind::disk, disk}});
}

struct PrefetchPlan : ::testing::Test {
  prefetch_plan make(const std::string& found) {
    auto plan = plan_of(terrace::test::small_space(), found);
    return {subject(terrace::test::small_space(), found.size()), plan, plan, window_bytes};
  }
  static std::vector<bool> all(const prefetch_plan::window& of) {
    return std::vector<bool>(of.objects->size(), true);
  }
};

} // namespace

TEST_F(PrefetchPlan, WindowsAreWholeChunksInOrderUpToTheEndOfWhatWasFound) {
  auto planned = make("hdddd..");
  std::vector<std::vector<uint32_t>> chunks;
  std::vector<bool> below;
  while (auto window = planned.next()) {
    chunks.push_back(window->chunks);
    below.push_back(window->below);
    EXPECT_EQ(window->objects->parents.front().empty(), chunks.size() == 1);
  }
  EXPECT_EQ(chunks, (std::vector<std::vector<uint32_t>>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(below, (std::vector<bool>{true, true, true}));
}

TEST_F(PrefetchPlan, DeliveredIsTheContiguousPrefixInWhateverOrderWindowsArrive) {
  auto planned = make("hddddd");
  auto first = *planned.next(), second = *planned.next(), third = *planned.next();
  planned.arrived(second, all(second));
  EXPECT_EQ(planned.result().all.delivered, 0u);
  planned.arrived(first, all(first));
  auto now = planned.result();
  EXPECT_EQ(now.all.delivered, 4u);
  EXPECT_EQ(now.by_tier[1].delivered, 1u);
  EXPECT_EQ(now.by_tier[2].delivered, 3u);
  EXPECT_EQ(now.by_tier[2].expected, 5u);
  planned.arrived(third, all(third));
  EXPECT_EQ(planned.result().all.delivered, 6u);
  EXPECT_EQ(planned.result().end, prefetch_end::complete);
}

TEST_F(PrefetchPlan, ALostObjectEndsItAndTheFirstOneIsNamed) {
  auto planned = make("dddddd");
  auto first = *planned.next(), second = *planned.next();
  planned.lost(second, 0, true);
  planned.arrived(first, {true, false});
  planned.lost(first, 1, false);
  EXPECT_FALSE(planned.next()) << "what is behind it is of no use";
  auto end = planned.result();
  EXPECT_EQ(end.all.delivered, 1u);
  EXPECT_EQ(end.end, prefetch_end::lost);
  ASSERT_TRUE(end.missing);
  EXPECT_EQ(end.missing->chunk, 1u);
  EXPECT_FALSE(end.damaged);
}

TEST_F(PrefetchPlan, WhatFallsBehindIsLeftToTheClient) {
  auto planned = make("hddddd");
  auto first = *planned.next(), second = *planned.next();
  planned.arrived(first, all(first));
  planned.arrived(second, {true, false});
  planned.fall_behind();
  EXPECT_FALSE(planned.next());
  auto now = planned.result();
  EXPECT_EQ(now.end, prefetch_end::complete);
  EXPECT_EQ(now.late, 3u);
  EXPECT_EQ(now.all.delivered, 3u);
  EXPECT_EQ(now.all.expected, 3u);
  EXPECT_EQ(now.all.found, 3u);
  EXPECT_EQ(now.by_tier[2].found, 2u);
  EXPECT_EQ(now.by_tier[2].expected, 2u);
  EXPECT_EQ(now.by_tier[2].delivered, 2u);
  EXPECT_FALSE(now.missing);
}

TEST_F(PrefetchPlan, WhatEndedBeforeItFellBehindHasItsReason) {
  auto planned = make("dddd");
  planned.stop(prefetch_end::cancelled);
  planned.fall_behind();
  EXPECT_EQ(planned.result().end, prefetch_end::cancelled);
  EXPECT_EQ(planned.result().late, 0u);
}

TEST_F(PrefetchPlan, TheFirstReasonToStopCounts) {
  auto planned = make("dddddd");
  auto first = *planned.next();
  planned.stop(prefetch_end::cancelled);
  planned.stop(prefetch_end::no_room);
  EXPECT_FALSE(planned.next());
  EXPECT_EQ(planned.result().end, prefetch_end::cancelled);
  EXPECT_EQ(end_for(errc::busy), prefetch_end::no_room);
  EXPECT_EQ(end_for(errc::deadline), prefetch_end::deadline);
  EXPECT_EQ(end_for(errc::internal), prefetch_end::lost);
}

TEST_F(PrefetchPlan, AChainIsCutToTheRoomForWhatIsRead) {
  auto spec = terrace::test::small_space();
  auto found = plan_of(spec, "hhdhdd");
  uint64_t each = physical_bytes_for(1 << 20);
  EXPECT_EQ(chunks_that_fit(spec, found, 3 * each), 6u);
  EXPECT_EQ(chunks_that_fit(spec, found, 2 * each), 5u);
  EXPECT_EQ(chunks_that_fit(spec, found, each), 4u);
  EXPECT_EQ(chunks_that_fit(spec, found, 0), 2u);
  prefetch_plan planned(subject(spec, 6), found, plan_of(spec, "hhdh"), window_bytes);
  while (auto window = planned.next())
    planned.arrived(*window, all(*window));
  auto end = planned.result();
  EXPECT_EQ(end.all.found, 6u);
  EXPECT_EQ(end.all.expected, 4u);
  EXPECT_EQ(end.all.delivered, 4u);
  EXPECT_EQ(end.by_tier[2].found, 3u);
  EXPECT_EQ(end.by_tier[2].expected, 1u);
  EXPECT_EQ(end.end, prefetch_end::no_room);
}

TEST_F(PrefetchPlan, BringsAllRanksAndOnlyTheLastStates) {
  auto spec = terrace::test::mixed_space(); // kv on two ranks, a shared one, a state on two ranks
  auto found = plan_of(spec, "ddd..dddddddddd");
  ASSERT_EQ(found.found_chunks, 3u);
  prefetch_plan planned(subject(spec, 3), found, found, window_bytes);
  auto window = planned.next();
  ASSERT_TRUE(window);
  EXPECT_EQ(window->chunks, (std::vector<uint32_t>{0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2}));
  EXPECT_EQ(window->objects->keys[1].rank, 1u);
  EXPECT_TRUE(window->objects->trailing.test(2));
  planned.arrived(*window, all(*window));
  EXPECT_EQ(planned.result().all.delivered, 3u);
}

TEST_F(PrefetchPlan, AnnouncesWhatIsDeliveredOnceAndNothingAfterItsEnd) {
  client_counters client;
  auto plan = plan_of(terrace::test::small_space(), "dddddddd");
  auto of = subject(terrace::test::small_space(), 8);
  of.arrivals = client.first(1);
  prefetch_plan planned(of, plan, plan, window_bytes);
  auto first = *planned.next(), second = *planned.next(), third = *planned.next(), fourth = *planned.next();
  planned.arrived(second, all(second));
  EXPECT_EQ(planned.next_arrival().chunks, 0u) << "nothing is delivered before the first";
  planned.arrived(first, all(first));
  auto arrived = planned.next_arrival();
  EXPECT_EQ(arrived.counters, of.arrivals);
  EXPECT_EQ(arrived.chunks, 4u);
  EXPECT_EQ(planned.next_arrival().chunks, 0u);
  planned.arrived(third, all(third));
  EXPECT_EQ(planned.next_arrival().chunks, 2u);
  planned.stop(prefetch_end::cancelled);
  planned.arrived(fourth, all(fourth));
  EXPECT_EQ(planned.next_arrival().chunks, 0u);
  EXPECT_EQ(planned.result().all.delivered, 8u);
}
