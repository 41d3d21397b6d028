#include "group/recent_lookups.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

recent_lookup with_digests(size_t count) {
  auto prefix = std::make_shared<chunk_prefix>();
  prefix->chunks.resize(count);
  recent_lookup one;
  one.prefix = std::move(prefix);
  return one;
}

std::vector<uint64_t> numbers(const recent_lookups::part& read) {
  std::vector<uint64_t> all;
  for (const recent_lookup& one : read.lookups)
    all.push_back(one.number);
  return all;
}

using list = std::vector<uint64_t>;

TEST(RecentLookups, AreNumberedAndReadInOrder) {
  recent_lookups kept;
  EXPECT_EQ(numbers(kept.read(0, 100)), list());
  for (int i = 0; i < 3; ++i)
    kept.add(with_digests(2));
  EXPECT_EQ(numbers(kept.read(0, 100)), (list{1, 2, 3}));
  EXPECT_EQ(numbers(kept.read(2, 100)), list{3});
  EXPECT_EQ(numbers(kept.read(3, 100)), list());
  EXPECT_EQ(numbers(kept.read(77, 100)), list()) << "a number of another daemon";
  EXPECT_EQ(kept.read(1, 100).last, 3u);
}

TEST(RecentLookups, TellTheSpeedOfTheLastOneThatDeclaredOne) {
  recent_lookups kept;
  for (uint32_t speed : {100, 200, 0}) {
    auto one = with_digests(1);
    one.space = space_id{7};
    one.prefill_tokens_per_s = speed;
    kept.add(std::move(one));
  }
  EXPECT_EQ(kept.prefill_speed_in(space_id{7}), 200u);
  EXPECT_EQ(kept.prefill_speed_in(space_id{8}), 0u) << "another space";
}

TEST(RecentLookups, AreReadInPartsOfABoundedNumberOfDigests) {
  recent_lookups kept;
  for (int i = 0; i < 3; ++i)
    kept.add(with_digests(4));
  EXPECT_EQ(numbers(kept.read(0, 8)), (list{1, 2}));
  EXPECT_EQ(numbers(kept.read(2, 1)), list{3}) << "one is read in any case";
}

TEST(RecentLookups, TheOldestGoWhenThereAreTooManyOrTooManyDigests) {
  recent_lookups kept(3, 10);
  for (int i = 0; i < 5; ++i)
    kept.add(with_digests(1));
  auto read = kept.read(1, 100);
  EXPECT_EQ(numbers(read), (list{3, 4, 5}));
  EXPECT_EQ(read.lost, 1u);
  EXPECT_EQ(kept.read(2, 100).lost, 0u);
  kept.add(with_digests(9));
  EXPECT_EQ(numbers(kept.read(0, 100)), (list{5, 6}));
  kept.add(with_digests(1'000));
  EXPECT_EQ(numbers(kept.read(0, 100)), list{7}) << "the last one is kept in any case";
}

TEST(RecentLookups, WaitersAreToldOnceUnlessTheyHaveEnded) {
  recent_lookups kept;
  auto live = std::make_shared<request_context>(), over = std::make_shared<request_context>();
  int told = 0;
  kept.changes().wait(0, live, [&] { ++told; });
  kept.changes().wait(0, over, [&] { FAIL() << "its request has ended"; });
  EXPECT_EQ(told, 0);
  over->ended = errc::deadline;
  kept.changes().wait(0, live, [] {});
  kept.add(with_digests(1));
  EXPECT_EQ(told, 1);
  kept.add(with_digests(1));
  EXPECT_EQ(told, 1);
  kept.changes().wait(1, live, [&] { ++told; });
  EXPECT_EQ(told, 2) << "at once";
}

} // namespace
