#include "tier/objects/tier_clear.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace terrace;

namespace {
std::vector<size_t> rest(clear_order& clear, size_t tiers) {
  std::vector<size_t> order;
  while (auto next = clear.next(tiers))
    order.push_back(*next);
  return order;
}
} // namespace

TEST(ClearOrder, TheOnlyTierIsAskedOnce) {
  clear_order clear;
  EXPECT_EQ(rest(clear, 1), std::vector<size_t>{0});
}

TEST(ClearOrder, TheFastestTierIsAskedFirstAndLast) {
  clear_order clear;
  EXPECT_EQ(rest(clear, 3), (std::vector<size_t>{0, 1, 2, 0}));
}

TEST(ClearOrder, EverythingIsAskedAgainIfATierJoined) {
  clear_order clear;
  EXPECT_EQ(clear.next(1), 0u);
  EXPECT_EQ(rest(clear, 2), (std::vector<size_t>{0, 1, 0}));
}

TEST(ClearOrder, ATierThatJoinsDuringARoundIsAskedInTheNext) {
  clear_order clear;
  EXPECT_EQ(clear.next(2), 0u);
  EXPECT_EQ(clear.next(3), 1u);
  EXPECT_EQ(rest(clear, 3), (std::vector<size_t>{0, 0, 1, 2, 0}));
}

TEST(ClearOrder, AddsUpTheAnswers) {
  clear_order clear;
  clear.add({{}, 2, 100, {}});
  clear.add({{errc::internal, "not durable"}, 1, 50, pending_clear{}});
  clear.add({{}, 0, 0, {}});
  EXPECT_EQ(clear.sum().objects, 3u);
  EXPECT_EQ(clear.sum().bytes, 150u);
  EXPECT_EQ(clear.sum().failure.code, errc::internal);
  EXPECT_TRUE(clear.sum().missed);
  clear.recorded({});
  EXPECT_EQ(clear.sum().failure.code, errc::ok);
}

TEST(ClearOrder, WhatPathsMissIsRecorded) {
  clear_order clear;
  EXPECT_FALSE(clear.unrecorded({}));
  pending_clear missed;
  missed.epoch = 7;
  clear.add({{errc::internal, "not durable"}, 1, 50, missed});
  space_fingerprint space{};
  space[0] = 3;
  auto record = clear.unrecorded(space);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->epoch, 7u);
  EXPECT_EQ(record->space, space);
  clear.recorded({errc::no_space, "the state directory is full"});
  EXPECT_EQ(clear.sum().failure.text, "not durable") << "the first failure";
  clear.recorded({});
  EXPECT_EQ(clear.sum().failure.code, errc::ok) << "the volume applies it when it is opened";
  clear.recorded({errc::no_space, "the state directory is full"});
  EXPECT_EQ(clear.sum().failure.code, errc::no_space);
}
