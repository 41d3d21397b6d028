#include "actors/gpu/daemon/device_slices.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <utility>

namespace terrace::gpu {
namespace {

/// An arena with objects one after the other, and a region in which their runs are.
struct layout {
  std::vector<std::byte> arena, region;
  std::vector<region_run> runs;
  std::vector<uint32_t> runs_per_object;
  std::vector<uint64_t> object_bytes;
  terrace::copy_request request;
  std::shared_ptr<const scatter_gather> gathered;

  void add(const std::vector<region_run>& of_object) {
    uint64_t bytes = 0;
    for (const region_run& run : of_object)
      bytes += run.bytes * run.count;
    runs.insert(runs.end(), of_object.begin(), of_object.end());
    runs_per_object.push_back(static_cast<uint32_t>(of_object.size()));
    object_bytes.push_back(bytes);
  }
  void finish(uint64_t region_bytes) {
    uint64_t all = 0;
    for (uint64_t bytes : object_bytes)
      all += bytes;
    arena.resize(all);
    region.resize(region_bytes);
    auto made = scatter_gather::make(runs, runs_per_object, object_bytes, region_bytes);
    gathered = std::make_shared<const scatter_gather>(made.value());
    request.runs = gathered;
    uint64_t at = 0;
    for (size_t i = 0; i < object_bytes.size(); at += object_bytes[i++])
      request.objects.push_back({arena.data() + at, i});
  }
  /// What a copier and a device do with the slices of a load.
  size_t load(uint64_t slot_bytes) {
    device_slices slices(request);
    size_t count = 0;
    while (auto slice = slices.next(slot_bytes)) {
      ++count;
      std::vector<std::byte> slot(slot_bytes);
      EXPECT_LE(slice->bytes, slot_bytes);
      EXPECT_LE(slice->copies.size(), device_slices::copies_max);
      uint64_t filled = 0;
      for (const auto& span : slice->spans) {
        EXPECT_EQ(span.at, filled);
        std::memcpy(slot.data() + span.at, span.inside, span.bytes);
        filled += span.bytes;
      }
      EXPECT_EQ(filled, slice->bytes);
      for (const strided_copy& copy : slice->copies)
        for (uint64_t i = 0; i < copy.count; ++i)
          std::memcpy(region.data() + copy.region_offset + i * copy.region_stride,
                      slot.data() + copy.object_offset + i * copy.object_stride, copy.bytes);
    }
    return count;
  }
  std::vector<std::byte> expected() const {
    std::vector<std::byte> all(region.size());
    for (const copied_object& object : request.objects) {
      auto pieces = gathered->pieces(object.number);
      while (auto piece = pieces.next())
        std::memcpy(all.data() + piece->region_offset, object.inside + piece->object_offset, piece->bytes);
    }
    return all;
  }
};

TEST(DeviceSlices, StridedPiecesAreOneCopy) {
  layout of;
  of.add({{0, 16, 64, 100}});
  of.finish(6400);
  device_slices slices(of.request);
  auto slice = slices.next(4096);
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->bytes, 1600U);
  EXPECT_EQ(slice->spans.size(), 1U);
  ASSERT_EQ(slice->copies.size(), 1U);
  EXPECT_EQ(slice->copies[0].count, 100U);
  EXPECT_EQ(slice->copies[0].region_stride, 64U);
  EXPECT_EQ(slice->copies[0].object_stride, 16U);
  EXPECT_FALSE(slices.next(4096));
}

TEST(DeviceSlices, ManyScatteredPiecesTakeSeveralSlices) {
  layout of;
  std::vector<region_run> runs;
  for (uint64_t i = 3 * device_slices::copies_max; i-- != 0;)
    runs.push_back({i * 8, 4, 0, 1});
  of.add(runs);
  of.finish(8 * 3 * device_slices::copies_max);
  EXPECT_EQ(of.load(1 << 20), 3U);
  EXPECT_TRUE(of.region == of.expected());
}

struct some_arena final : device_memory {};

TEST(DeviceSlices, ObjectsOfADevicesArenaAreCopiedFromWhereTheyAre) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    layout of;
    for (uint64_t object = 0; object < 4; ++object)
      of.add({{object * 1000, 1 + random() % 30, 40, 1 + random() % 20}});
    of.finish(4000);
    for (std::byte& byte : of.arena)
      byte = static_cast<std::byte>(random());
    auto expected = of.expected();
    of.request.arena = std::make_shared<some_arena>();
    for (copied_object& object : of.request.objects)
      object.at = static_cast<uint64_t>(std::exchange(object.inside, nullptr) - of.arena.data());
    device_slices slices(of.request);
    uint64_t slice_bytes = 1 + random() % 500;
    while (auto slice = slices.next(slice_bytes)) {
      EXPECT_LE(slice->bytes, slice_bytes);
      EXPECT_TRUE(slice->spans.empty());
      for (const strided_copy& copy : slice->copies)
        for (uint64_t i = 0; i < copy.count; ++i)
          std::memcpy(of.region.data() + copy.region_offset + i * copy.region_stride,
                      of.arena.data() + copy.object_offset + i * copy.object_stride, copy.bytes);
    }
    EXPECT_TRUE(of.region == expected);
  }
}

TEST(DeviceSlices, WhatIsPinnedIsReadWhereItIsAndTheRestPassesTheSlot) {
  constexpr uint64_t piece = 256 << 10;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto memory = std::make_shared<const arena>(arena::create({.bytes = 4 * piece}).value());
    layout of;
    for (uint64_t object = 0, at = 0; object < 12; ++object) {
      uint64_t bytes = 1 + random() % (piece / 8);
      of.add({{at, bytes, bytes, 1 + random() % 4}});
      at += 4 * bytes;
    }
    of.finish(12 * piece);
    // Objects anywhere in the arena, in any order.
    for (copied_object& object : of.request.objects) {
      object.inside = memory->data() + random() % (3 * piece);
      for (uint64_t at = 0; at < of.object_bytes[object.number]; at += 61)
        object.inside[at] = static_cast<std::byte>(random());
    }
    pinned_arenas arenas(piece);
    arenas.add(memory);
    arenas.serve();
    std::map<uint64_t, uint64_t> regions; // begins in the arena
    for (uint64_t id = 1, steps = 1 + random() % 5; id <= steps; ++id)
      if (auto step = arenas.next(id)) {
        regions[id] = step->offset;
        arenas.done({});
      }
    device_slices slices(of.request);
    uint64_t direct = 0, slice_bytes = 1 + random() % piece;
    while (auto slice = slices.next(slice_bytes, &arenas)) {
      EXPECT_LE(slice->bytes, slice_bytes);
      EXPECT_EQ(slice->spans.empty(), slice->pinned.has_value());
      std::vector<std::byte> slot(slice_bytes);
      const std::byte* from = slot.data();
      for (const auto& span : slice->spans)
        std::memcpy(slot.data() + span.at, span.inside, span.bytes);
      if (slice->pinned) {
        direct += slice->bytes;
        from = memory->data() + regions.at(slice->pinned->region);
      }
      for (const strided_copy& copy : slice->copies)
        for (uint64_t i = 0; i < copy.count; ++i) {
          uint64_t at = copy.object_offset + i * copy.object_stride;
          EXPECT_LE(at + copy.bytes, slice->pinned ? piece : slice_bytes) << "within one registration";
          std::memcpy(of.region.data() + copy.region_offset + i * copy.region_stride, from + at, copy.bytes);
        }
    }
    EXPECT_EQ(direct != 0, arenas.pinned_bytes() != 0);
    EXPECT_TRUE(of.region == of.expected());
  }
}

TEST(DeviceSlices, ObjectsOfOnePieceComeTogether) {
  constexpr uint64_t piece = 2 << 20;
  auto memory = std::make_shared<const arena>(arena::create({.bytes = 2 * piece}).value());
  layout of;
  for (uint64_t object = 0; object < 8; ++object)
    of.add({{object * 4096, 4096, 0, 1}});
  of.finish(8 * 4096);
  for (copied_object& object : of.request.objects) // now here, now there
    object.inside = memory->data() + object.number % 2 * piece + object.number * 8192;
  pinned_arenas arenas(piece);
  arenas.add(memory);
  arenas.serve();
  for (uint64_t id = 1; arenas.next(id); ++id)
    arenas.done({});
  device_slices slices(of.request);
  size_t count = 0;
  while (slices.next(piece, &arenas))
    ++count;
  EXPECT_EQ(count, 2U);
}

TEST(DeviceSlices, ARandomLayoutArrivesByteForByte) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    layout of;
    uint64_t at = 0;
    for (uint64_t object = 0, objects = 1 + random() % 5; object < objects; ++object) {
      std::vector<region_run> runs;
      for (uint64_t run = 0, count = 1 + random() % 4; run < count; ++run) {
        uint64_t bytes = 1 + random() % 300, pieces = 1 + random() % 20, stride = bytes + random() % 3 * 50;
        runs.push_back({at, bytes, stride, pieces});
        at += stride * pieces + random() % 3 * 7;
      }
      of.add(runs);
    }
    of.finish(at + 1000);
    for (std::byte& byte : of.arena)
      byte = static_cast<std::byte>(random());
    of.load(1 + random() % 2000);
    EXPECT_TRUE(of.region == of.expected());
  }
}

} // namespace
} // namespace terrace::gpu
