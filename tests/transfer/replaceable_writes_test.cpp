#include "transfer/write_queue.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace terrace;
using namespace terrace::test;

namespace {

/// Gives credits, and knows how many bytes of them are out.
struct counting_sink : credit_sink {
  uint64_t back = 0;
  void give_back(uint64_t bytes) override { back += bytes; }
};

struct ReplaceableWrites : ::testing::Test {
  std::shared_ptr<counting_sink> sink = std::make_shared<counting_sink>();
  replaceable_writes line;

  /// Objects `first`, `first + 1`, ...; its credit is `number` bytes, by which it is told from others.
  write_through_notice notice(uint64_t number, uint64_t first, size_t objects = 1) {
    write_through_notice made;
    made.objects = chain(first, objects, 100);
    made.credit = std::make_shared<write_credit>(sink, number);
    made.replaceable = true;
    return made;
  }
};

using flags = std::vector<bool>;

} // namespace

TEST_F(ReplaceableWrites, NothingIsWrittenBeforeItIsRipe) {
  line.push(notice(1, 0, 2));
  EXPECT_FALSE(line.next());
  line.release_delayed();
  line.push(notice(2, 7));
  auto first = line.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->notice.objects->size(), 2u);
  EXPECT_EQ(first->current, (flags{true, true}));
  EXPECT_FALSE(line.next()) << "what came later waits for the next time";
  EXPECT_FALSE(line.empty());
  line.release_delayed();
  EXPECT_TRUE(line.next());
  EXPECT_TRUE(line.empty());
  EXPECT_EQ(line.bytes(), 0u);
  EXPECT_EQ(line.objects(), 0u);
}

TEST_F(ReplaceableWrites, AReplacedNoticeEndsAtOnce) {
  line.push(notice(1, 0, 2));
  uint64_t bytes = line.bytes();
  line.push(notice(2, 0));
  EXPECT_EQ(sink->back, 0u) << "one of its two objects is not replaced";
  line.push(notice(4, 1));
  EXPECT_EQ(sink->back, 1u);
  EXPECT_EQ(line.bytes(), bytes);
  line.push(notice(8, 0, 2));
  EXPECT_EQ(sink->back, 7u);
  EXPECT_EQ(line.bytes(), bytes);
  line.release_delayed();
  auto only = line.next();
  ASSERT_TRUE(only);
  EXPECT_EQ(only->current, (flags{true, true}));
  EXPECT_FALSE(line.next());
  EXPECT_TRUE(line.empty());
}

TEST_F(ReplaceableWrites, OnlyTheLastOfEachObjectIsCurrent) {
  line.push(notice(1, 0, 3));
  line.push(notice(2, 1));
  line.release_delayed();
  EXPECT_EQ(line.next()->current, (flags{true, false, true}));
  EXPECT_EQ(line.next()->current, (flags{true}));
}

TEST_F(ReplaceableWrites, WhatBeginsAgainReplacesNothingLater) {
  line.push(notice(1, 0, 2));
  line.release_delayed();
  auto first = line.next();
  line.push(notice(2, 1)); // while it is being written
  line.push_again(std::move(first->notice));
  line.release_delayed();
  EXPECT_EQ(line.next()->current, (flags{true})) << "the later one";
  EXPECT_EQ(line.next()->current, (flags{true, false}));
  first = {};
  line.push(notice(4, 5));
  auto again = notice(8, 5);
  line.push_again(std::move(again));
  EXPECT_EQ(sink->back & 8, 8u) << "nothing of it is left to write";
}

/// Against a model: the last notice of each object, in the order of the notices.
TEST_F(ReplaceableWrites, EachObjectIsWrittenOnceWithItsLastNotice) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    std::map<entry_key, uint64_t> last;
    uint64_t number = 1;
    size_t pushes = random() % 40;
    for (size_t i = 0; i < pushes; ++i, ++number) {
      auto one = notice(number, random() % 6, 1 + random() % 4);
      for (const object_key& key : one.objects->keys)
        last[to_entry_key(key)] = number;
      line.push(std::move(one));
    }
    EXPECT_EQ(line.objects(), last.size());
    line.release_delayed();
    uint64_t before = 0;
    while (auto turn = line.next()) {
      uint64_t back = sink->back;
      for (size_t i = 0; i < turn->current.size(); ++i)
        if (turn->current[i])
          last.erase(to_entry_key(turn->notice.objects->keys[i]));
      turn->notice.credit = nullptr;
      uint64_t its_number = sink->back - back;
      EXPECT_GT(its_number, before) << "in their order";
      before = its_number;
    }
    EXPECT_TRUE(last.empty());
    EXPECT_TRUE(line.empty());
    EXPECT_EQ(line.bytes(), 0u);
  }
}
