#include "tests/policy/policy_contract.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

entry_key key(uint64_t n) { return {n, n}; }

/// Returns the numbers of all victims of tier 0.
std::vector<uint64_t> order(eviction_tracker& tracker) {
  std::vector<uint64_t> numbers;
  for (auto& v : tracker.victims(0, {~uint64_t{0}}, 0))
    numbers.push_back(v.key.high);
  return numbers;
}

/// Entries 1, 2 and 3, inserted in this order.
struct three_roots {
  explicit three_roots(std::string_view name) {
    use_policy(tracker, 0, name);
    for (uint64_t n : {1, 2, 3})
      tracker.insert(0, {key(n), {}, 1}, n);
  }
  eviction_tracker tracker;
};

/// A chain of entries 1 to 9, of which 5 is not resident, and entries 11 and 12 without a chain.
struct a_chain {
  explicit a_chain(std::string_view name) {
    use_policy(tracker, 0, name);
    for (uint64_t n = 1; n <= 9; ++n)
      tracker.insert(0, {key(n), n == 1 ? entry_key{} : key(n - 1), 1}, n);
    for (uint64_t n : {11, 12})
      tracker.insert(0, {key(n), {}, 1}, n);
    tracker.erase(0, key(5));
  }
  eviction_tracker tracker;
};

TEST(Hits, OfARunAreThoseOfItsEntriesFromTheLastOn) {
  for (std::string_view name : eviction_policy_names()) {
    SCOPED_TRACE(name);
    a_chain together(name), one_by_one(name);
    for (policy_time now : {2'000'000'000ULL, 9'000'000'000ULL, 50'000'000'000ULL}) {
      together.tracker.hit(0, key(8), now, 6); // 8 to 3
      for (uint64_t n = 8; n >= 3; --n)
        one_by_one.tracker.hit(0, key(n), now);
      together.tracker.hit(0, key(12), now, 100); // has no chain
      one_by_one.tracker.hit(0, key(12), now);
    }
    if (const survival_model* model = together.tracker.model()) {
      for (size_t c : {access_history::class_for({.uses = 1}), access_history::class_for({.uses = 2}),
                       access_history::class_for({.uses = 4})}) {
        EXPECT_EQ(model->returns(c), one_by_one.tracker.model()->returns(c));
        EXPECT_EQ(model->reached(c), one_by_one.tracker.model()->reached(c));
      }
    }
    EXPECT_EQ(order(together.tracker), order(one_by_one.tracker));
  }
}

TEST(Lru, NamesTheLeastRecentlyUsedFirst) {
  three_roots test("lru");
  test.tracker.hit(0, key(1), 4);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 1}));
}

TEST(Lru, CountsASecondInsertAsAUse) {
  three_roots test("lru");
  test.tracker.insert(0, {key(1), {}, 1}, 4);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 1}));
  EXPECT_EQ(test.tracker.residents(0), 3u);
}

TEST(Lru, OrdersRequestsAtOneTime) {
  three_roots test("lru");
  for (uint64_t n : {3, 2, 1}) {
    std::vector chain{key(n)};
    test.tracker.begin_request(chain, {}, 4);
  }
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{3, 2, 1}));
}

TEST(Lru, PutsAPrefixInItsOwnPlaceOnceItsLastSuffixHasGone) {
  eviction_tracker tracker;
  use_policy(tracker, 0, "lru");
  tracker.insert(0, {key(1), {}, 1}, 1);
  tracker.insert(0, {key(2), key(1), 1}, 2);
  tracker.insert(0, {key(3), {}, 1}, 3);
  tracker.hit(0, key(1), 4); // a request that ends at the prefix
  EXPECT_EQ(order(tracker), (std::vector<uint64_t>{2, 3, 1}));
}

TEST(Fifo, IgnoresHits) {
  three_roots test("fifo");
  test.tracker.hit(0, key(1), 4);
  test.tracker.insert(0, {key(2), {}, 1}, 5);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{1, 2, 3}));
}

TEST(Fifo, CountsAReturnAsANewArrival) {
  three_roots test("fifo");
  test.tracker.erase(0, key(1));
  test.tracker.insert(0, {key(1), {}, 1}, 4);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 1}));
}

TEST(Lfu, NamesTheLeastUsedAndOfEqualsWhoReachedTheCountFirst) {
  three_roots test("lfu");
  for (auto [n, at] : {std::pair{2, 4}, {1, 5}, {1, 6}, {3, 7}})
    test.tracker.hit(0, key(static_cast<uint64_t>(n)), static_cast<policy_time>(at));
  // 2 and 3 have two uses, and 2 was used longer ago.
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 1}));
}

TEST(Lfu, CountsFromOneForOneThatComesBack) {
  three_roots test("lfu");
  for (policy_time at : {4, 5, 6})
    test.tracker.hit(0, key(1), at);
  test.tracker.hit(0, key(2), 7);
  test.tracker.erase(0, key(1));
  test.tracker.insert(0, {key(1), {}, 1}, 8);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{3, 1, 2}));
}

TEST(Mru, NamesTheMostRecentlyUsedFirst) {
  three_roots test("mru");
  test.tracker.hit(0, key(1), 4);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{1, 3, 2}));
}

TEST(Slru, ProtectsWhoWasUsedAgain) {
  three_roots test("slru");
  test.tracker.hit(0, key(1), 4);
  test.tracker.insert(0, {key(4), {}, 1}, 5);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 4, 1}));
}

TEST(Slru, SendsTheOldestBackOnProbationWhenMoreThanHalfAreProtected) {
  three_roots test("slru");
  test.tracker.insert(0, {key(4), {}, 1}, 4);
  for (uint64_t n : {1, 2, 3})
    test.tracker.hit(0, key(n), 4 + n); // two of four may be protected
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{4, 1, 2, 3}));
}

TEST(S3Fifo, MovesOnWhoWasUsedMoreThanOnce) {
  three_roots test("s3fifo");
  for (policy_time at : {4, 5})
    test.tracker.hit(0, key(1), at);
  test.tracker.hit(0, key(2), 6); // one access is not enough
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 1}));
}

TEST(S3Fifo, SendsAReturnStraightToTheMainQueue) {
  three_roots test("s3fifo");
  test.tracker.erase(0, key(1));
  test.tracker.insert(0, {key(1), {}, 1}, 4);
  for (uint64_t n : {5, 6})
    test.tracker.insert(0, {key(n), {}, 1}, n);
  auto named = test.tracker.victims(0, {4}, 7);
  ASSERT_EQ(named.size(), 4u);
  for (auto& v : named)
    EXPECT_NE(v.key, key(1));
}

TEST(Sieve, PassesOverOnceWhoWasUsed) {
  three_roots test("sieve");
  test.tracker.hit(0, key(1), 4);
  auto named = test.tracker.victims(0, {1}, 5);
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].key, key(2));
  test.tracker.erase(0, key(2));
  test.tracker.insert(0, {key(4), {}, 1}, 6);                       // ahead of the hand: 1 is behind it
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{3, 4, 1})); // 1 has no mark left and comes next round
}

TEST(Arc, TakesWhoWasUsedOnceBeforeWhoWasUsedTwice) {
  three_roots test("arc");
  test.tracker.hit(0, key(1), 4);
  test.tracker.insert(0, {key(4), {}, 1}, 5);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 4, 1}));
}

TEST(Arc, GivesMoreRoomToNewcomersAfterTheyCameBack) {
  three_roots test("arc");
  auto first_named = [&] { return test.tracker.victims(0, {1}, 20).at(0).key; };
  test.tracker.hit(0, key(3), 4); // 3 is often used; 1 and 2 were used once
  for (policy_time at = 5; at < 9; at += 2) {
    auto gone = first_named();
    test.tracker.erase(0, gone); // leaves T1 ...
    test.tracker.insert(0, {key(at + 10), {}, 1}, at);
    test.tracker.insert(0, {gone, {}, 1}, at + 1); // ... and returns: T1 was too small
  }
  EXPECT_EQ(first_named(), key(3)); // two newcomers are no longer too many
}

TEST(Lru2, NamesWhoWasUsedOnceBeforeAnybodyUsedTwice) {
  three_roots test("lru2");
  test.tracker.hit(0, key(2), 4'000'000'000);
  test.tracker.hit(0, key(1), 9'000'000'000);
  test.tracker.insert(0, {key(4), {}, 1}, 10'000'000'000);
  test.tracker.hit(0, key(2),
                   11'000'000'000); // now its last use but one is at 4 s, that of 1 at the beginning
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{3, 4, 1, 2}));
}

TEST(Lru2, RemembersAUseFromBeforeTheEviction) {
  three_roots test("lru2");
  test.tracker.erase(0, key(1));
  test.tracker.insert(0, {key(1), {}, 1}, 4'000'000'000);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 1}));
  test.tracker.insert(0, {key(4), {}, 1}, 5'000'000'000);
  EXPECT_EQ(order(test.tracker), (std::vector<uint64_t>{2, 3, 4, 1}));
}

TEST(Gap, WhatIsBehindItLeavesFirst) {
  // 4 and 3 make room for 5 and 6, and are not stored again.
  for (std::string_view policy : eviction_policy_names()) {
    SCOPED_TRACE(policy);
    eviction_tracker tracker;
    use_policy(tracker, 0, policy);
    std::vector<entry_key> chain;
    for (uint64_t n : {1, 2, 3, 4, 5, 6})
      chain.push_back(key(n));
    auto request = tracker.begin_request(chain, {}, 1);
    auto insert = [&](uint64_t n) {
      tracker.insert(0, {key(n), n == 1 ? entry_key{} : key(n - 1), 1}, 1, request);
    };
    for (uint64_t n : {4, 3, 2, 1})
      insert(n);
    auto given_up = tracker.victims(0, {2, request}, 1);
    ASSERT_EQ(given_up.size(), 2u);
    for (const victim& one : given_up)
      tracker.erase(0, one.key);
    for (uint64_t n : {6, 5})
      insert(n);
    EXPECT_EQ(order(tracker), (std::vector<uint64_t>{6, 5, 2, 1}));
  }
}

TEST(Priority, NamesTheLowestFirstAndInItTheLeastRecentlyUsed) {
  eviction_tracker tracker;
  use_policy(tracker, 0, "priority");
  auto store = [&](uint64_t n, uint8_t priority) {
    std::vector chain{key(n)};
    auto request = tracker.begin_request(chain, {.retention = priority}, n);
    tracker.insert(0, {key(n), {}, 1}, n, request);
  };
  for (auto [n, priority] : {std::pair{1, 5}, {2, 0}, {3, 2}, {4, 0}})
    store(static_cast<uint64_t>(n), static_cast<uint8_t>(priority));
  EXPECT_EQ(order(tracker), (std::vector<uint64_t>{2, 4, 3, 1}));
  std::vector chain{key(1)};
  tracker.begin_request(chain, {.retention = 0}, 9); // the last request decides
  EXPECT_EQ(order(tracker), (std::vector<uint64_t>{2, 4, 1, 3}));
}

TEST(Priority, FindsAPrefixWhosePrioritySankWhileASuffixHungOnIt) {
  eviction_tracker tracker;
  use_policy(tracker, 0, "priority");
  std::vector chain{key(1), key(2)};
  auto request = tracker.begin_request(chain, {.retention = 5}, 1);
  tracker.insert(0, {key(1), {}, 1}, 1, request);
  tracker.insert(0, {key(2), key(1), 1}, 1, request);
  std::vector prefix{key(1)};
  tracker.begin_request(prefix, {.retention = 0}, 2);
  tracker.erase(0, key(2));
  EXPECT_EQ(order(tracker), (std::vector<uint64_t>{1}));
}

} // namespace
} // namespace terrace::test
