#include "tests/policy/policy_contract.hpp"

#include <gtest/gtest.h>

namespace terrace::testing {
namespace {

entry_key key(uint64_t n) { return {n, n}; }

/// The numbers of all victims of tier 0.
std::vector<uint64_t> order(eviction_ledger& ledger) {
  std::vector<uint64_t> numbers;
  for (auto& v : ledger.victims(0, {~uint64_t{0}}, 0))
    numbers.push_back(v.key.high);
  return numbers;
}

/// Entries 1, 2 and 3, inserted in this order.
struct three_roots {
  explicit three_roots(std::string_view name) {
    use_policy(ledger, 0, name);
    for (uint64_t n : {1, 2, 3})
      ledger.insert(0, {key(n), {}, 1}, n);
  }
  eviction_ledger ledger;
};

TEST(Lru, NamesTheLeastRecentlyUsedFirst) {
  three_roots test("lru");
  test.ledger.hit(0, key(1), 4);
  EXPECT_EQ(order(test.ledger), (std::vector<uint64_t>{2, 3, 1}));
}

TEST(Lru, CountsASecondInsertAsAUse) {
  three_roots test("lru");
  test.ledger.insert(0, {key(1), {}, 1}, 4);
  EXPECT_EQ(order(test.ledger), (std::vector<uint64_t>{2, 3, 1}));
  EXPECT_EQ(test.ledger.residents(0), 3u);
}

TEST(Lru, OrdersRequestsAtOneTime) {
  three_roots test("lru");
  for (uint64_t n : {3, 2, 1}) {
    std::vector chain{key(n)};
    test.ledger.begin_request(chain, {}, 4);
  }
  EXPECT_EQ(order(test.ledger), (std::vector<uint64_t>{3, 2, 1}));
}

TEST(Lru, PutsAPrefixInItsOwnPlaceOnceItsLastSuffixHasGone) {
  eviction_ledger ledger;
  use_policy(ledger, 0, "lru");
  ledger.insert(0, {key(1), {}, 1}, 1);
  ledger.insert(0, {key(2), key(1), 1}, 2);
  ledger.insert(0, {key(3), {}, 1}, 3);
  ledger.hit(0, key(1), 4); // a request that ends at the prefix
  EXPECT_EQ(order(ledger), (std::vector<uint64_t>{2, 3, 1}));
}

TEST(Fifo, IgnoresHits) {
  three_roots test("fifo");
  test.ledger.hit(0, key(1), 4);
  test.ledger.insert(0, {key(2), {}, 1}, 5);
  EXPECT_EQ(order(test.ledger), (std::vector<uint64_t>{1, 2, 3}));
}

TEST(Fifo, CountsAReturnAsANewArrival) {
  three_roots test("fifo");
  test.ledger.erase(0, key(1));
  test.ledger.insert(0, {key(1), {}, 1}, 4);
  EXPECT_EQ(order(test.ledger), (std::vector<uint64_t>{2, 3, 1}));
}

} // namespace
} // namespace terrace::testing
