#include "tier/objects/tier_clear.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace terrace;

namespace {
std::vector<size_t> rest(clear_course& course, size_t tiers) {
  std::vector<size_t> order;
  while (auto next = course.next(tiers))
    order.push_back(*next);
  return order;
}
} // namespace

TEST(ClearCourse, TheOnlyTierIsAskedOnce) {
  clear_course course;
  EXPECT_EQ(rest(course, 1), std::vector<size_t>{0});
}

TEST(ClearCourse, TheFastestTierIsAskedFirstAndLast) {
  clear_course course;
  EXPECT_EQ(rest(course, 3), (std::vector<size_t>{0, 1, 2, 0}));
}

TEST(ClearCourse, EverythingIsAskedAgainIfATierJoined) {
  clear_course course;
  EXPECT_EQ(course.next(1), 0u);
  EXPECT_EQ(rest(course, 2), (std::vector<size_t>{0, 1, 0}));
}

TEST(ClearCourse, ATierThatJoinsDuringARoundIsAskedInTheNext) {
  clear_course course;
  EXPECT_EQ(course.next(2), 0u);
  EXPECT_EQ(course.next(3), 1u);
  EXPECT_EQ(rest(course, 3), (std::vector<size_t>{0, 0, 1, 2, 0}));
}

TEST(ClearCourse, AddsUpTheAnswers) {
  clear_course course;
  course.add({{}, 2, 100, {}});
  course.add({{errc::internal, "not durable"}, 1, 50, pending_clear{}});
  course.add({{}, 0, 0, {}});
  EXPECT_EQ(course.sum().objects, 3u);
  EXPECT_EQ(course.sum().bytes, 150u);
  EXPECT_EQ(course.sum().failure.code, errc::internal);
  EXPECT_TRUE(course.sum().missed);
  course.recorded({});
  EXPECT_EQ(course.sum().failure.code, errc::ok);
}

TEST(ClearCourse, WhatPathsMissIsRecorded) {
  clear_course course;
  EXPECT_FALSE(course.unrecorded({}));
  pending_clear missed;
  missed.epoch = 7;
  course.add({{errc::internal, "not durable"}, 1, 50, missed});
  space_fingerprint space{};
  space[0] = 3;
  auto record = course.unrecorded(space);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->epoch, 7u);
  EXPECT_EQ(record->space, space);
  course.recorded({errc::no_space, "the state directory is full"});
  EXPECT_EQ(course.sum().failure.text, "not durable") << "the first failure";
  course.recorded({});
  EXPECT_EQ(course.sum().failure.code, errc::ok) << "the volume applies it when it is opened";
  course.recorded({errc::no_space, "the state directory is full"});
  EXPECT_EQ(course.sum().failure.code, errc::no_space);
}
