#include "transfer/direct_window.hpp"

#include "index/object_header.hpp"
#include "tests/support/counters.hpp"
#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr uint64_t device_payload = 4096;
constexpr uint64_t device_extent = physical_bytes_for(device_payload);

/// A load of eight objects in chunks of two.
struct DeviceWindow : ::testing::Test {
  std::shared_ptr<segmented_arena> memory =
      segmented_arena::create(
          {.name = "test", .bytes = 16 * device_extent, .segment_bytes = 16 * device_extent})
          .value();
  ledger_ptr leases = std::make_shared<lease_ledger>();
  load_subject of;
  load_result done;
  load_plan plan{of, *memory, *leases, done};

  DeviceWindow() {
    of.objects = chain(1, 8, device_payload);
    of.objects_per_chunk = 2;
    of.context = context();
    std::vector<region_run> runs;
    for (size_t i = 0; i < of.objects->size(); ++i)
      runs.push_back({i * device_payload, device_payload, 0, 1});
    of.runs = std::make_shared<const scatter_gather>(
        scatter_gather::make(runs, {}, of.objects->payload_bytes, of.objects->size() * device_payload)
            .value());
  }

  static hold_ptr held(size_t objects, const std::vector<size_t>& has) {
    std::vector<object_place> places(objects);
    for (size_t i : has)
      places[i] = {object_id{i + 1}, i * device_extent, device_payload, device_extent};
    return std::make_shared<object_hold>(release_sink_ptr{}, std::move(places));
  }
};

TEST_F(DeviceWindow, WhatALeaseHoldsAndWasClearedIsLeftOut) {
  device_window window(plan, UINT64_MAX);
  ASSERT_TRUE(window.add_held(held(8, {0, 1, 2, 3, 4, 5, 6, 7})));
  EXPECT_EQ(window.confirmation().ids.size(), 8u);
  EXPECT_EQ(window.confirmation().ids.back(), object_id{8});
  EXPECT_TRUE(window.add_confirmed(std::vector<bool>(8, true)));
  EXPECT_FALSE(window.add_confirmed({true, true, true, true, true, false, true, true}));
  EXPECT_EQ(window.request().ids.size(), 4u);
}

TEST_F(DeviceWindow, TakesTheWholeChunksFromTheBeginningOn) {
  device_window window(plan, UINT64_MAX);
  ASSERT_EQ(window.objects()->size(), 8u);
  ASSERT_TRUE(window.add_held(held(8, {0, 1, 2, 3, 4, 6, 7})));
  auto request = window.request();
  ASSERT_EQ(request.ids, (std::vector{object_id{1}, object_id{2}, object_id{3}, object_id{4}}));
  EXPECT_EQ(request.copy.objects[3].number, 3u);
  EXPECT_EQ(request.copy.objects[3].at, 3 * device_extent + object_header_bytes);
  EXPECT_EQ(request.copy.arrived.chunks, 2u);
  EXPECT_EQ(window.deliver(), 4 * device_payload);
  EXPECT_EQ(plan.begin, 4u);
  EXPECT_EQ(done.chunks, 2u);
  EXPECT_EQ(done.bytes_by_tier[static_cast<size_t>(tier_kind::gpu)], 4 * device_payload);
  device_window rest(plan, UINT64_MAX);
  ASSERT_TRUE(rest.add_held(held(4, {0, 1})));
  EXPECT_EQ(rest.request().copy.objects[0].number, 4u) << "numbers are those of the load";
}

TEST_F(DeviceWindow, TheLastChunksBringTheGenerations) {
  struct some_page final : device_memory {};
  of.generations = {std::make_shared<some_page>(), 8, 2, 5};
  device_window part(plan, UINT64_MAX);
  ASSERT_TRUE(part.add_held(held(8, {0, 1, 2, 3, 4, 5})));
  EXPECT_EQ(part.request().copy.generations.page, nullptr);
  device_window whole(plan, UINT64_MAX);
  ASSERT_TRUE(whole.add_held(held(8, {0, 1, 2, 3, 4, 5, 6, 7})));
  auto all = whole.request().copy.generations;
  EXPECT_EQ(std::tuple(all.page, all.slot, all.count, all.value),
            std::tuple(of.generations.page, 8U, 2U, 5U));
}

TEST_F(DeviceWindow, IsNoneIfItsFirstChunkIsNotThere) {
  EXPECT_FALSE(device_window(plan, UINT64_MAX).add_held(nullptr));
  EXPECT_FALSE(device_window(plan, UINT64_MAX).add_held(held(8, {0, 2, 3})));
  EXPECT_EQ(plan.begin, 0u);
}

TEST_F(DeviceWindow, HasWhatTheLeaseHoldsInTheTier) {
  EXPECT_EQ(device_window(plan, UINT64_MAX).leased(), nullptr);
  of.leased = {{tier_kind::host, held(8, {0, 1})}, {tier_kind::gpu, held(8, {2, 3, 5})}};
  plan.begin = 2;
  auto leased = device_window(plan, UINT64_MAX).leased();
  ASSERT_TRUE(leased);
  ASSERT_EQ(leased->places().size(), 6u);
  EXPECT_TRUE(leased->places()[0].present());
  EXPECT_FALSE(leased->places()[2].present());
  EXPECT_TRUE(leased->places()[3].present());
}

TEST_F(DeviceWindow, ALeaseMayHoldAllOfAWindowInHostMemory) {
  EXPECT_FALSE(plan.leased_in_host(plan.next_window(UINT64_MAX)));
  of.leased = {{tier_kind::host, held(8, {0, 1, 2, 3, 4, 5, 6})}, {tier_kind::gpu, held(8, {7})}};
  EXPECT_FALSE(plan.leased_in_host(plan.next_window(UINT64_MAX)));
  of.leased.front().held = held(8, {2, 3, 4, 5, 6, 7});
  EXPECT_FALSE(plan.leased_in_host(plan.next_window(UINT64_MAX)));
  plan.begin = 2;
  EXPECT_TRUE(plan.leased_in_host(plan.next_window(UINT64_MAX)));
}

TEST_F(DeviceWindow, IsTheWholeLoadIfALeaseHoldsAllOfItInHostMemory) {
  of.leased = {{tier_kind::host, held(8, {0, 1, 2, 3, 4, 5, 6, 7})}};
  EXPECT_EQ(plan.device_window_bytes(1000), 1000U) << "it does not load under the lease";
  of.held_by = std::make_shared<int>();
  of.runs = std::make_shared<const scatter_gather>();
  EXPECT_EQ(plan.device_window_bytes(1000), UINT64_MAX);
  client_counters client;
  of.arrivals = client.first(1);
  EXPECT_EQ(plan.device_window_bytes(1000), 1000U) << "somebody watches chunks arrive";
  of.arrivals = nullptr;
  of.leased = {{tier_kind::host, held(8, {0, 1, 2, 3, 4, 5, 6})}};
  EXPECT_EQ(plan.device_window_bytes(1000), 1000U);
}

} // namespace
