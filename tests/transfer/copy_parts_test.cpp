// A copy in parts moves the bytes of the whole, whoever does which part, and they end together.

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "index/payload_checksum.hpp"
#include "memory/region_populator.hpp"
#include "tests/support/counters.hpp"
#include "tests/support/seed.hpp"
#include "transfer/copy_ops.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>

using namespace terrace;
using namespace terrace::test;

namespace copy_parts_test {

constexpr uint64_t page = 4096;
constexpr uint64_t mebibyte = 1 << 20;

/// Objects of so many bytes, one after the other in the arena and in the region.
struct CopyParts : ::testing::Test {
  std::vector<std::byte> arena, region;
  client_counters client;
  mapping mapping_ = [] {
    unique_fd fd(::memfd_create("region", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), 16 * mebibyte), 0);
    return mapping::map(fd.get(), 16 * mebibyte, true).value();
  }();

  copy_request copy(const std::vector<uint64_t>& sizes) {
    std::vector<region_run> runs;
    copy_request made;
    uint64_t bytes = 0;
    for (uint64_t each : sizes) {
      runs.push_back({bytes, each, 0, 1});
      bytes += each;
    }
    arena.assign(bytes, std::byte{0});
    region.resize(bytes);
    for (size_t i = 0; i < bytes; ++i)
      region[i] = static_cast<std::byte>(i % 251 + 1);
    uint64_t at = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      made.objects.push_back({.inside = arena.data() + at, .number = i, .bytes = sizes[i]});
      at += sizes[i];
    }
    made.outside = {region.data(), -1, region.size(), nullptr};
    made.runs = std::make_shared<const scatter_gather>(scatter_gather::make(runs, {}, sizes, bytes).value());
    made.arrived = {client.first(1), 0, 1, 5};
    return made;
  }
  static std::vector<uint64_t> bytes_of(const std::vector<copy_request>& parts) {
    std::vector<uint64_t> bytes;
    for (const copy_request& part : parts) {
      bytes.push_back(0);
      for (size_t i = 0; i < part.objects.size(); ++i)
        bytes.back() += part.runs->count(part.objects[i].number, part.range_of(i)).bytes;
    }
    return bytes;
  }
  uint32_t arrived() { return client.values(1).front(); }
};

TEST_F(CopyParts, AShortCopyIsNotDivided) {
  EXPECT_EQ(copy_parts_max(copy({page})), 1u);
  EXPECT_EQ(copy_parts_max(copy({2 * mebibyte - 1})), 1u);
  EXPECT_EQ(copy_parts_max(copy({2 * mebibyte})), 2u);
  EXPECT_EQ(copy_parts_max(copy({})), 1u);
}

TEST_F(CopyParts, ObjectsOfUnknownLengthAreNotDivided) {
  auto what = copy({8 * mebibyte});
  what.objects[0].bytes = 0;
  EXPECT_EQ(copy_parts_max(what), 1u);
}

TEST_F(CopyParts, OnePartIsTheCopyItself) {
  auto parts = parts_of(copy({3 * page, page}), 1);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].parts, nullptr);
  EXPECT_EQ(parts[0].objects.size(), 2u);
}

TEST_F(CopyParts, AreAboutEqualAndBeginAtPages) {
  auto parts = parts_of(copy({10 * page + 100}), 3);
  EXPECT_EQ(bytes_of(parts), (std::vector<uint64_t>{3 * page, 3 * page, 4 * page + 100}));
  parts = parts_of(copy({page, 8 * page, 3 * page}), 4);
  EXPECT_EQ(bytes_of(parts), (std::vector<uint64_t>{3 * page, 3 * page, 3 * page, 3 * page}));
  EXPECT_EQ(parts[0].objects.size(), 2u);
  EXPECT_EQ(parts[1].objects.size(), 1u) << "the middle of the second object";
  EXPECT_EQ(parts[3].objects.size(), 1u);
}

TEST_F(CopyParts, WithChecksumsTheyBeginWithAnObject) {
  auto what = copy({page, page, 8 * page, page, page});
  what.checksums = true;
  auto parts = parts_of(what, 3);
  EXPECT_EQ(bytes_of(parts), (std::vector<uint64_t>{2 * page, 8 * page, 2 * page}));
  what = copy({64 * mebibyte, page});
  what.checksums = true;
  EXPECT_EQ(copy_parts_max(what), 2u);
  EXPECT_EQ(parts_of(what, 2).size(), 2u);
  what = copy({64 * mebibyte});
  what.checksums = true;
  EXPECT_EQ(copy_parts_max(what), 1u);
  EXPECT_EQ(parts_of(what, 4).size(), 1u);
}

TEST_F(CopyParts, NoneIsEmpty) {
  EXPECT_EQ(bytes_of(parts_of(copy({2 * page}), 16)), (std::vector<uint64_t>{page, page}));
  EXPECT_EQ(parts_of(copy({100, 200}), 16).size(), 2u);
}

TEST_F(CopyParts, WhatHasArrivedIsAnnouncedByTheLastOneToEnd) {
  auto parts = parts_of(copy({9 * page}), 3);
  for (size_t i : {2, 0, 1}) {
    EXPECT_EQ(arrived(), 0u);
    EXPECT_EQ(move_bytes(parts[i], page).failure.code, errc::ok);
  }
  EXPECT_EQ(arrived(), 5u);
  EXPECT_EQ(arena, region);
}

TEST_F(CopyParts, WhenOneFailsTheOthersStopAndItsFailureIsThatOfTheWhole) {
  auto parts = parts_of(copy({9 * page}), 3);
  parts[1].outside = {nullptr, -1, parts[1].outside.bytes, nullptr}; // reading it fails
  std::vector<copy_answer> answers(3);
  for (size_t i : {2, 1, 0})
    answers[i] = move_bytes(parts[i], page);
  EXPECT_EQ(answers[2].failure.code, errc::ok);
  EXPECT_EQ(answers[1].failure.code, errc::gone);
  EXPECT_EQ(answers[0].failure.code, errc::cancelled);
  EXPECT_EQ(answers[0].bytes, 0u);
  EXPECT_EQ(arrived(), 0u);
  auto whole = joined(answers);
  EXPECT_EQ(whole.failure.code, errc::gone);
  EXPECT_EQ(whole.bytes, 3 * page);
}

TEST_F(CopyParts, OnlyTheFirstOfSeveralFailuresIsOne) {
  auto what = copy({9 * page});
  what.outside = {nullptr, -1, what.outside.bytes, nullptr};
  auto parts = parts_of(std::move(what), 3);
  byte_copy first(parts[0], page), second(parts[1], page); // at the same time
  EXPECT_TRUE(first.go_on(UINT64_MAX));
  EXPECT_TRUE(second.go_on(UINT64_MAX));
  auto answers = std::vector{first.take_answer(), second.take_answer()};
  EXPECT_EQ(answers[0].failure.code, errc::gone);
  EXPECT_EQ(answers[1].failure.code, errc::cancelled);
}

TEST_F(CopyParts, OfARequestThatEndsAllEnd) {
  auto what = copy({9 * page});
  what.context = std::make_shared<request_context>();
  auto parts = parts_of(what, 3);
  std::vector<copy_answer> answers{move_bytes(parts[0], page)};
  what.context->ended = errc::deadline;
  answers.push_back(move_bytes(parts[1], page));
  answers.push_back(move_bytes(parts[2], page));
  auto whole = joined(answers);
  EXPECT_EQ(whole.failure.code, errc::deadline);
  EXPECT_EQ(whole.bytes, 3 * page);
  EXPECT_EQ(arrived(), 0u);
}

// Layouts at random: what the parts move and sum is what the whole does.
TEST_F(CopyParts, MoveWhatTheWholeMoves) {
  const uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);
  auto up_to = [&](uint64_t most) { return random() % most + 1; };
  for (int round = 0; round < 200; ++round) {
    copy_request what;
    what.direction = copy_direction::out_of_arena;
    std::vector<region_run> runs;
    std::vector<uint32_t> per_object;
    std::vector<uint64_t> sizes;
    uint64_t at = 0, all = 0;
    for (uint64_t objects = up_to(4); objects != 0; --objects) {
      per_object.push_back(static_cast<uint32_t>(up_to(4)));
      uint64_t bytes = 0;
      for (uint32_t i = 0; i < per_object.back(); ++i) {
        uint64_t piece = up_to(random() % 2 == 0 ? 500 : 3 * page), count = up_to(20);
        if (random() % 4 == 0) {
          runs.push_back({region_run::skipped, piece, 0, 1});
          bytes += piece;
          continue;
        }
        uint64_t stride = piece + (random() % 2 == 0 ? 0 : up_to(300));
        runs.push_back({at, piece, stride, count});
        bytes += piece * count;
        at += stride * count + (random() % 2 == 0 ? 0 : up_to(100));
      }
      sizes.push_back(bytes);
      all += bytes;
    }
    arena.resize(all);
    for (std::byte& each : arena)
      each = static_cast<std::byte>(random());
    region.assign(at, std::byte{0});
    what.outside = {region.data(), -1, region.size(), nullptr};
    uint64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
      what.objects.push_back({.inside = arena.data() + begin, .number = i, .bytes = sizes[i]});
    what.runs =
        std::make_shared<const scatter_gather>(scatter_gather::make(runs, per_object, sizes, at).value());
    what.checksums = !what.runs->skips() && random() % 2 == 0;

    auto expected = move_bytes(what, page);
    auto moved = region;
    std::fill(region.begin(), region.end(), std::byte{0});
    auto parts = parts_of(what, up_to(6));
    std::shuffle(parts.begin(), parts.end(), random); // the last to end is any of them
    std::vector<copy_answer> answers;
    for (const copy_request& part : parts)
      answers.push_back(move_bytes(part, up_to(2 * page)));
    EXPECT_EQ(region, moved);
    auto whole = joined(answers);
    EXPECT_EQ(whole.failure.code, errc::ok) << whole.failure.text;
    EXPECT_EQ(whole.bytes, expected.bytes);
    auto sums = whole.checksums;
    std::sort(sums.begin(), sums.end());
    std::sort(expected.checksums.begin(), expected.checksums.end());
    EXPECT_EQ(sums, expected.checksums);
  }
}

TEST_F(CopyParts, AnswersAreJoinedInTheOrderOfTheParts) {
  auto what = copy({page, 2 * page, 3 * page});
  what.checksums = true;
  auto expected = move_bytes(what, page).checksums;
  std::vector<copy_answer> answers;
  for (const copy_request& part : parts_of(what, 3))
    answers.push_back(move_bytes(part, page));
  EXPECT_EQ(joined(answers).checksums, expected);
}

// ---- first loads ----

std::vector<uint64_t> begins(const std::vector<copy_request>& parts) {
  std::vector<uint64_t> all;
  for (const copy_request& part : parts)
    all.push_back(part.runs->pieces(part.objects[0].number, part.range_of(0)).next()->region_offset);
  return all;
}

TEST_F(CopyParts, OfAFirstLoadBeginAtLargePages) {
  auto populator = std::make_shared<region_populator>();
  region_ahead ahead(populator, 16 * mebibyte);
  auto load = [&] {
    copy_request made = copy({8 * mebibyte});
    made.direction = copy_direction::out_of_arena;
    made.outside.ahead = &ahead;
    return made;
  };
  EXPECT_EQ(begins(parts_of(load(), 8)),
            (std::vector<uint64_t>{0, 2 * mebibyte, 4 * mebibyte, 6 * mebibyte}));
  EXPECT_EQ(begins(parts_of(load(), 3)), (std::vector<uint64_t>{0, 2 * mebibyte, 4 * mebibyte}));
  auto store = load();
  store.direction = copy_direction::into_arena;
  EXPECT_EQ(parts_of(std::move(store), 8).size(), 8u);
  ahead.before_load(mapping_.data(), 2 * mebibyte); // one of them is reached: it may be divided
  EXPECT_EQ(begins(parts_of(load(), 8)),
            (std::vector<uint64_t>{0, 2 * mebibyte, 3 * mebibyte, 4 * mebibyte, 6 * mebibyte}));
}

TEST_F(CopyParts, OfAFirstLoadWithGapsAreDividedAnywhere) {
  auto populator = std::make_shared<region_populator>();
  region_ahead ahead(populator, 64 * mebibyte);
  copy_request what = copy({4 * mebibyte});
  const std::vector<region_run> runs{{0, mebibyte / 2, mebibyte, 8}};
  const std::vector<uint64_t> sizes{4 * mebibyte};
  region.resize(16 * mebibyte);
  what.runs = std::make_shared<const scatter_gather>(
      scatter_gather::make(runs, std::vector<uint32_t>{1}, sizes, region.size()).value());
  what.direction = copy_direction::out_of_arena;
  what.outside = {.data = region.data(), .bytes = region.size(), .ahead = &ahead};
  EXPECT_EQ(parts_of(what, 4).size(), 4u);
}

} // namespace copy_parts_test
