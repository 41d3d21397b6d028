#include "transfer/write_queue.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

write_through_notice notice(size_t objects) {
  return {nullptr,
          chain(1, objects, 100),
          std::make_shared<object_hold>(release_sink_ptr{}, std::vector<object_place>(objects)),
          nullptr,
          {}};
}

} // namespace

TEST(WriteQueue, WritesSoManyBytesAtATime) {
  write_queue line(300);
  EXPECT_TRUE(line.idle());
  for (size_t objects : {2, 2, 1})
    line.push(notice(objects));
  auto first = line.next(), second = line.next();
  ASSERT_TRUE(first && second) << "there was room when the second began";
  EXPECT_FALSE(line.next());
  EXPECT_FALSE(line.idle());
  line.done(*first);
  auto third = line.next();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->objects(), 1u) << "they are written in order";
  line.done(*second);
  EXPECT_FALSE(line.next());
  EXPECT_FALSE(line.idle());
  line.done(*third);
  EXPECT_TRUE(line.idle());
}

TEST(WriteQueue, ALargerNoticeIsWrittenAlone) {
  write_queue line(300);
  line.push(notice(9));
  line.push(notice(1));
  auto large = line.next();
  ASSERT_TRUE(large);
  EXPECT_FALSE(line.next());
  line.done(*large);
  EXPECT_TRUE(line.next());
}

TEST(WriteQueue, UrgentOnesGoBeforeTheOthersInTheirOrder) {
  write_queue line(1);
  line.push(notice(1));
  line.push_urgent(notice(2));
  line.push(notice(3));
  line.push_urgent(notice(4));
  std::vector<size_t> order;
  while (auto next = line.next()) {
    order.push_back(next->objects());
    line.done(*next);
  }
  EXPECT_EQ(order, (std::vector<size_t>{2, 4, 1, 3}));
  line.push(notice(5));
  line.push_urgent(notice(6));
  EXPECT_EQ(line.next()->objects(), 6u);
}

TEST(WriteQueue, ANoticeWithoutBytesIsInProgressToo) {
  write_queue line(300);
  line.push(notice(0));
  auto empty = line.next();
  ASSERT_TRUE(empty);
  EXPECT_FALSE(line.idle());
  line.done(*empty);
  EXPECT_TRUE(line.idle());
}

TEST(WriteQueue, ReplaceableOnesWaitUntilTheyAreRipeAndTakeTurns) {
  write_queue line(1 << 20);
  auto replaceable = [](uint64_t number) {
    auto made = notice(1);
    made.objects = chain(number, 1, 100);
    made.replaceable = true;
    return made;
  };
  for (uint64_t number = 0; number < 20; ++number)
    line.push(replaceable(number));
  EXPECT_FALSE(line.next());
  EXPECT_FALSE(line.idle());
  line.release_delayed();
  line.push(notice(2));
  line.push(notice(2));
  std::vector<write_plan> all;
  std::vector<bool> kinds;
  while (auto next = line.next()) {
    kinds.push_back(next->replaceable());
    all.push_back(std::move(*next));
  }
  ASSERT_EQ(kinds.size(), 2 + write_queue::replaceable_max);
  EXPECT_EQ(std::vector(kinds.begin(), kinds.begin() + 4), (std::vector{false, true, false, true}));
  for (const write_plan& one : all)
    line.done(one);
  while (auto next = line.next())
    line.done(*next);
  EXPECT_TRUE(line.idle());
}

TEST(WriteQueue, WhatCouldNotBeWrittenBeginsAgain) {
  write_queue line(300);
  auto one = notice(1);
  one.replaceable = true;
  line.push(std::move(one));
  line.release_delayed();
  auto first = line.next();
  ASSERT_TRUE(first);
  line.done(*first);
  line.push_again(first->again());
  EXPECT_FALSE(line.idle());
  line.release_delayed();
  auto again = line.next();
  ASSERT_TRUE(again);
  line.done(*again);
  EXPECT_TRUE(line.idle());
}
