// Which objects a prefetch brings, in which windows, and what it has delivered.
#include "transfer/prefetch_course.hpp"

#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"
#include "tests/support/counters.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t window_bytes =
    2 * prefetch_course::windows_max * physical_bytes_for(1 << 20); // two chunks each

prefetch_subject subject(space_spec spec, size_t chunks) {
  prefetch_subject of;
  auto in = std::make_shared<opened_space>();
  in->id = space_id{1};
  in->spec = std::move(spec);
  of.in = in;
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

struct PrefetchCourse : ::testing::Test {
  prefetch_course make(const std::string& found) {
    auto plan = plan_of(terrace::testing::small_space(), found);
    return {subject(terrace::testing::small_space(), found.size()), plan, plan, window_bytes};
  }
  static std::vector<bool> all(const prefetch_course::window& of) {
    return std::vector<bool>(of.objects->size(), true);
  }
};

} // namespace

TEST_F(PrefetchCourse, WindowsAreWholeChunksInOrderUpToTheEndOfWhatWasFound) {
  auto course = make("hdddd..");
  std::vector<std::vector<uint32_t>> chunks;
  std::vector<bool> below;
  while (auto window = course.next()) {
    chunks.push_back(window->chunks);
    below.push_back(window->below);
    EXPECT_EQ(window->objects->parents.front().empty(), chunks.size() == 1);
  }
  EXPECT_EQ(chunks, (std::vector<std::vector<uint32_t>>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(below, (std::vector<bool>{true, true, true}));
}

TEST_F(PrefetchCourse, DeliveredIsTheContiguousPrefixInWhateverOrderWindowsArrive) {
  auto course = make("hddddd");
  auto first = *course.next(), second = *course.next(), third = *course.next();
  course.arrived(second, all(second));
  EXPECT_EQ(course.result().all.delivered, 0u);
  course.arrived(first, all(first));
  auto now = course.result();
  EXPECT_EQ(now.all.delivered, 4u);
  EXPECT_EQ(now.by_tier[1].delivered, 1u);
  EXPECT_EQ(now.by_tier[2].delivered, 3u);
  EXPECT_EQ(now.by_tier[2].expected, 5u);
  course.arrived(third, all(third));
  EXPECT_EQ(course.result().all.delivered, 6u);
  EXPECT_EQ(course.result().end, prefetch_end::complete);
}

TEST_F(PrefetchCourse, ALostObjectEndsItAndTheFirstOneIsNamed) {
  auto course = make("dddddd");
  auto first = *course.next(), second = *course.next();
  course.lost(second, 0, true);
  course.arrived(first, {true, false});
  course.lost(first, 1, false);
  EXPECT_FALSE(course.next()) << "what is behind it is of no use";
  auto end = course.result();
  EXPECT_EQ(end.all.delivered, 1u);
  EXPECT_EQ(end.end, prefetch_end::lost);
  ASSERT_TRUE(end.missing);
  EXPECT_EQ(end.missing->chunk, 1u);
  EXPECT_FALSE(end.damaged);
}

TEST_F(PrefetchCourse, TheFirstReasonToStopCounts) {
  auto course = make("dddddd");
  auto first = *course.next();
  course.stop(prefetch_end::cancelled);
  course.stop(prefetch_end::no_room);
  EXPECT_FALSE(course.next());
  EXPECT_EQ(course.result().end, prefetch_end::cancelled);
  EXPECT_EQ(end_for(errc::busy), prefetch_end::no_room);
  EXPECT_EQ(end_for(errc::deadline), prefetch_end::deadline);
  EXPECT_EQ(end_for(errc::internal), prefetch_end::lost);
}

TEST_F(PrefetchCourse, AChainIsCutToTheRoomForWhatIsRead) {
  auto spec = terrace::testing::small_space();
  auto found = plan_of(spec, "hhdhdd");
  uint64_t each = physical_bytes_for(1 << 20);
  EXPECT_EQ(chunks_that_fit(spec, found, 3 * each), 6u);
  EXPECT_EQ(chunks_that_fit(spec, found, 2 * each), 5u);
  EXPECT_EQ(chunks_that_fit(spec, found, each), 4u);
  EXPECT_EQ(chunks_that_fit(spec, found, 0), 2u);
  prefetch_course course(subject(spec, 6), found, plan_of(spec, "hhdh"), window_bytes);
  while (auto window = course.next())
    course.arrived(*window, all(*window));
  auto end = course.result();
  EXPECT_EQ(end.all.found, 6u);
  EXPECT_EQ(end.all.expected, 4u);
  EXPECT_EQ(end.all.delivered, 4u);
  EXPECT_EQ(end.by_tier[2].found, 3u);
  EXPECT_EQ(end.by_tier[2].expected, 1u);
  EXPECT_EQ(end.end, prefetch_end::no_room);
}

TEST_F(PrefetchCourse, BringsAllRanksAndOnlyTheLastStates) {
  auto spec = terrace::testing::mixed_space(); // kv on two ranks, a shared one, a state on two ranks
  auto found = plan_of(spec, "ddd..dddddddddd");
  ASSERT_EQ(found.found_chunks, 3u);
  prefetch_course course(subject(spec, 3), found, found, window_bytes);
  auto window = course.next();
  ASSERT_TRUE(window);
  EXPECT_EQ(window->chunks, (std::vector<uint32_t>{0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2}));
  EXPECT_EQ(window->objects->keys[1].rank, 1u);
  EXPECT_TRUE(window->objects->trailing.test(2));
  course.arrived(*window, all(*window));
  EXPECT_EQ(course.result().all.delivered, 3u);
}

TEST_F(PrefetchCourse, AnnouncesWhatIsDeliveredOnceAndNothingAfterItsEnd) {
  client_counters client;
  auto plan = plan_of(terrace::testing::small_space(), "dddddddd");
  auto of = subject(terrace::testing::small_space(), 8);
  of.arrivals = client.first(1);
  prefetch_course course(of, plan, plan, window_bytes);
  auto first = *course.next(), second = *course.next(), third = *course.next(), fourth = *course.next();
  course.arrived(second, all(second));
  EXPECT_EQ(course.next_arrival().chunks, 0u) << "nothing is delivered before the first";
  course.arrived(first, all(first));
  auto arrived = course.next_arrival();
  EXPECT_EQ(arrived.counters, of.arrivals);
  EXPECT_EQ(arrived.chunks, 4u);
  EXPECT_EQ(course.next_arrival().chunks, 0u);
  course.arrived(third, all(third));
  EXPECT_EQ(course.next_arrival().chunks, 2u);
  course.stop(prefetch_end::cancelled);
  course.arrived(fourth, all(fourth));
  EXPECT_EQ(course.next_arrival().chunks, 0u);
  EXPECT_EQ(course.result().all.delivered, 8u);
}
