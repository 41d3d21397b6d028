#include "transfer/direct_window.hpp"

#include "index/object_header.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t direct_payload = 4096;
constexpr uint64_t direct_extent = physical_bytes_for(direct_payload);

/// A load of eight objects in chunks of two.
struct DirectWindow : ::testing::Test {
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create(
          {.name = "test", .bytes = 16 * direct_extent, .segment_bytes = 16 * direct_extent})
          .value();
  ledger_ptr leases = std::make_shared<lease_ledger>();
  load_subject of;
  load_result done;
  load_plan plan{of, *memory, *leases, done};
  recent_keys read;

  DirectWindow() { load(chain(1, 8, direct_payload)); }

  void load(const batch_ptr& objects) {
    of.objects = objects;
    of.objects_per_chunk = 2;
    of.context = context();
    std::vector<region_run> runs;
    uint64_t at = 0;
    for (uint64_t bytes : objects->payload_bytes) {
      runs.push_back({at, bytes, 0, 1});
      at += bytes;
    }
    of.runs = std::make_shared<const scatter_gather>(
        scatter_gather::make(runs, {}, objects->payload_bytes, at).value());
  }
  /// The same chain with objects of these sizes.
  void load_sizes(const std::vector<uint64_t>& bytes) {
    auto changed = std::make_shared<object_batch>(*chain(1, 8, direct_payload));
    changed->payload_bytes = bytes;
    load(changed);
  }
  static hold_ptr held(size_t objects, const std::vector<size_t>& has) {
    std::vector<object_place> places(objects);
    for (size_t i : has)
      places[i] = {object_id{i + 1}, i * direct_extent, direct_payload, direct_extent, 5};
    return std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
  }
};

TEST(FirstAllowed, LooksLittleFurtherThanTheAnswer) {
  for (size_t size : {1, 2, 7, 1000, 65'536})
    for (size_t answer : {0, 1, 2, 3, 8, 500, 999, 60'000, 70'000})
      for (size_t first : {1, 2, 64}) {
        size_t looked = 0;
        EXPECT_EQ(first_allowed(size, first,
                                [&](size_t most) {
                                  looked += most;
                                  return std::min(most, answer);
                                }),
                  std::min(size, answer));
        // Each step is four times as long as those before it, and only one is longer than the answer.
        EXPECT_LE(looked, std::max(first, 6 * std::min(size, answer))) << size << ", " << answer;
      }
}

TEST(FirstAllowed, LooksAtTheFirstChunkAloneIfThatDecides) {
  size_t calls = 0;
  EXPECT_EQ(first_allowed(65'536, 2,
                          [&](size_t most) {
                            ++calls;
                            EXPECT_EQ(most, 2U);
                            return size_t{1};
                          }),
            1U);
  EXPECT_EQ(calls, 1U);
  EXPECT_EQ(first_allowed(0, 2, [](size_t most) { return most; }), 0U);
}

TEST_F(DirectWindow, IsCutToWholeChunks) {
  direct_window window(plan, UINT64_MAX);
  EXPECT_EQ(window.size(), 8u);
  EXPECT_FALSE(window.objects()) << "nothing is copied of a window that does not begin";
  EXPECT_TRUE(window.cut(8));
  EXPECT_EQ(window.objects()->size(), 8u);
  EXPECT_TRUE(window.cut(5));
  EXPECT_EQ(window.objects()->size(), 4u);
  EXPECT_FALSE(window.cut(1));
  EXPECT_FALSE(window.cut(0));
  EXPECT_EQ(direct_window(plan, 3 * direct_extent).size(), 2u) << "whole chunks of its bytes";
}

TEST_F(DirectWindow, ObjectsThatTheDeviceDoesNotVerifyEndIt) {
  EXPECT_EQ(direct_window(plan, UINT64_MAX).readable(8, direct_extent), 8u);
  EXPECT_EQ(direct_window(plan, UINT64_MAX).readable(3, direct_extent), 3u) << "others are not looked at";
  EXPECT_EQ(direct_window(plan, UINT64_MAX).readable(8, direct_extent - 1), 0u);
  EXPECT_EQ(direct_window(plan, UINT64_MAX).readable(8, 0), 0u);
  load_sizes({4096, 300, 241, 4096, 240, 4096, 4096, 4096});
  EXPECT_EQ(direct_window(plan, UINT64_MAX).readable(8, direct_extent), 4u) << "too short";
  load_sizes({4096, 300, 4097, 4096, 241, 4096, 4096, 4096});
  EXPECT_EQ(direct_window(plan, UINT64_MAX).readable(8, direct_extent), 2u) << "too long";
}

TEST_F(DirectWindow, WhatWasReadLatelyEndsIt) {
  direct_window window(plan, UINT64_MAX);
  EXPECT_EQ(window.before_known(8, read), 8u);
  read.add(of.objects->keys[4]);
  EXPECT_EQ(window.before_known(8, read), 4u);
  EXPECT_EQ(window.before_known(3, read), 3u) << "others are not looked at";
  plan.begin = 4;
  EXPECT_EQ(direct_window(plan, UINT64_MAX).before_known(4, read), 0u);
  read.add(of.objects->keys[0]);
  EXPECT_EQ(window.before_known(8, read), 0u);
}

TEST_F(DirectWindow, WhatAnotherTierHasEndsIt) {
  tier_index host;
  direct_window window(plan, UINT64_MAX);
  EXPECT_EQ(window.before_present(8, host), 8u);
  host.table().insert({.key = of.objects->keys[5], .physical_bytes = 8192, .payload_bytes = 4096});
  EXPECT_EQ(window.before_present(8, host), 5u);
  EXPECT_EQ(window.before_present(5, host), 5u) << "others are not looked at";
  EXPECT_EQ(window.before_present(0, host), 0u);
  plan.begin = 4;
  EXPECT_EQ(direct_window(plan, UINT64_MAX).before_present(4, host), 1u);
}

TEST_F(DirectWindow, AsksForWhatIsHeldFromTheBeginningOn) {
  direct_window window(plan, UINT64_MAX);
  ASSERT_TRUE(window.cut(8));
  EXPECT_FALSE(window.add_held(nullptr));
  EXPECT_FALSE(window.add_held(held(8, {0, 2, 3})));
  ASSERT_TRUE(window.add_held(held(8, {0, 1, 2, 3, 4, 6, 7})));
  auto request = window.request(nullptr);
  ASSERT_EQ(request.copy.objects.size(), 4u);
  EXPECT_EQ(request.copy.objects[3].number, 3u);
  EXPECT_EQ(request.keys[3], of.objects->keys[3]);
  EXPECT_EQ(request.places[3].offset, 3 * direct_extent);
  EXPECT_EQ(request.places[3].generation, 5u);
  EXPECT_EQ(request.copy.owners.size(), 1u);
  EXPECT_FALSE(request.copy.generations.page);
}

TEST_F(DirectWindow, DeliversWhatWasReadAndNotesIt) {
  direct_window window(plan, UINT64_MAX);
  ASSERT_TRUE(window.cut(8));
  ASSERT_TRUE(window.add_held(held(8, {0, 1, 2, 3, 4, 5, 6, 7})));
  EXPECT_FALSE(window.add_read(5)) << "not all of it";
  EXPECT_EQ(window.deliver(read), 4 * direct_payload);
  EXPECT_EQ(plan.begin, 4u);
  EXPECT_EQ(done.chunks, 2u);
  EXPECT_EQ(done.bytes_by_tier[static_cast<size_t>(tier_kind::disk)], 4 * direct_payload);
  EXPECT_TRUE(read.has(of.objects->keys[0]));
  EXPECT_TRUE(read.has(of.objects->keys[2]));
  EXPECT_FALSE(read.has(of.objects->keys[4]));
  direct_window rest(plan, UINT64_MAX);
  ASSERT_TRUE(rest.cut(4));
  EXPECT_EQ(rest.objects()->size(), 4u);
  ASSERT_TRUE(rest.add_held(held(4, {0, 1, 2, 3})));
  EXPECT_EQ(rest.request(nullptr).copy.objects[0].number, 4u);
  EXPECT_TRUE(rest.add_read(4));
  rest.deliver(read);
  EXPECT_TRUE(plan.complete());
}

TEST_F(DirectWindow, WhatWasClearedMeanwhileIsNotDelivered) {
  direct_window window(plan, UINT64_MAX);
  ASSERT_TRUE(window.cut(8));
  ASSERT_TRUE(window.add_held(held(8, {0, 1, 2, 3, 4, 5, 6, 7})));
  EXPECT_FALSE(window.add_read(6));
  EXPECT_EQ(window.confirmation().ids, (std::vector{object_id{1}, object_id{2}, object_id{3}, object_id{4},
                                                    object_id{5}, object_id{6}}));
  EXPECT_TRUE(window.add_confirmed(std::vector<bool>(6, true)));
  EXPECT_FALSE(window.add_confirmed({true, true, true, false, true, true}));
  EXPECT_EQ(window.deliver(read), 2 * direct_payload);
  EXPECT_FALSE(read.has(of.objects->keys[2]));
}

TEST_F(DirectWindow, TellsOnlyThoseWhoWait) {
  struct some_page final : device_memory {};
  direct_window window(plan, UINT64_MAX);
  ASSERT_TRUE(window.cut(8));
  ASSERT_TRUE(window.add_held(held(8, {0, 1, 2, 3, 4, 5, 6, 7})));
  EXPECT_FALSE(window.announcement());
  of.generations = {std::make_shared<some_page>(), 8, 2, 5};
  auto all = window.announcement();
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->objects.empty());
  EXPECT_EQ(all->arrived.chunks, 4u);
  EXPECT_EQ(std::tuple(all->generations.page, all->generations.slot, all->generations.count,
                       all->generations.value),
            std::tuple(of.generations.page, 8U, 2U, 5U));
  EXPECT_FALSE(window.add_read(5));
  EXPECT_FALSE(window.announcement()) << "not all have arrived";
  EXPECT_FALSE(window.add_read(0));
  EXPECT_FALSE(window.announcement());
}

TEST_F(DirectWindow, LeasesHoldTheirPartOfIt) {
  EXPECT_FALSE(direct_window(plan, UINT64_MAX).leased());
  of.leased = {{tier_kind::disk, held(8, {0, 1, 2, 3, 4, 5, 6, 7})}};
  plan.begin = 2;
  direct_window window(plan, UINT64_MAX);
  auto part = window.leased();
  ASSERT_TRUE(part);
  ASSERT_EQ(part->places().size(), 6u);
  EXPECT_EQ(part->places()[0].offset, 2 * direct_extent);
}

} // namespace
