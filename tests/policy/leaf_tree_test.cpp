#include "policy/leaf_tree.hpp"

#include <gtest/gtest.h>

namespace terrace::testing {
namespace {

entry_key key(uint64_t n) { return {n, n}; }

/// The victims' numbers, all of them.
std::vector<uint64_t> order(const leaf_tree& tree) {
  std::vector<uint64_t> numbers;
  for (auto& v : tree.victims(~uint64_t{0}, [](entry_key) { return true; }))
    numbers.push_back(v.key.high);
  return numbers;
}

TEST(LeafTree, LinksAParentThatArrivesAfterItsChildren) {
  leaf_tree tree;
  tree.insert({key(2), key(1), 1}, {5});
  tree.insert({key(3), key(1), 1}, {6});
  EXPECT_EQ(tree.absent_size(), 1u);
  tree.insert({key(1), {}, 1}, {1});
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{2, 3, 1})); // not 1 first, whatever its rank
  EXPECT_EQ(tree.absent_size(), 0u);
}

TEST(LeafTree, NamesTheParentInItsPlaceOnceTheLastChildWasNamed) {
  leaf_tree tree;
  tree.insert({key(1), {}, 1}, {3});
  tree.insert({key(2), key(1), 1}, {2});
  tree.insert({key(8), {}, 1}, {1});
  tree.insert({key(9), {}, 1}, {4});
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{8, 2, 1, 9}));
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{8, 2, 1, 9})); // naming changes nothing
}

TEST(LeafTree, KeepsAnAncestorAcrossAGap) {
  leaf_tree tree;
  for (uint64_t n : {1, 2, 3})
    tree.insert({key(n), n == 1 ? entry_key{} : key(n - 1), 1}, {n});
  tree.erase(key(2)); // out of order: dropped by force
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{3, 1}));
  EXPECT_EQ(tree.absent_size(), 1u);
  tree.erase(key(3));
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{1}));
  EXPECT_EQ(tree.absent_size(), 0u);
}

TEST(LeafTree, FillsAGapAgain) {
  leaf_tree tree;
  for (uint64_t n : {1, 2, 3})
    tree.insert({key(n), n == 1 ? entry_key{} : key(n - 1), 1}, {n});
  tree.erase(key(2));
  tree.insert({key(2), key(1), 7}, {9});
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{3, 2, 1}));
}

TEST(LeafTree, MakesNoCircles) {
  leaf_tree tree;
  tree.insert({key(2), key(1), 1}, {1});
  tree.insert({key(1), key(2), 1}, {2});
  tree.insert({key(5), key(5), 1}, {3});
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{2, 1, 5}));
  for (uint64_t n : {1, 2, 5})
    EXPECT_TRUE(tree.erase(key(n)));
  EXPECT_EQ(tree.size() + tree.absent_size(), 0u);
}

TEST(LeafTree, HoldsAParentWhoseChildMayNotLeave) {
  leaf_tree tree;
  tree.insert({key(1), {}, 1}, {1});
  tree.insert({key(2), key(1), 1}, {2});
  tree.insert({key(3), {}, 1}, {3});
  auto named = tree.victims(9, [](entry_key k) { return k != key(2); });
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].key, key(3));
}

TEST(LeafTree, LooksAtNoMoreLeavesThanItNeeds) {
  leaf_tree tree;
  for (uint64_t n = 1; n <= 1'000; ++n)
    tree.insert({key(n), {}, 10}, {n});
  int asked = 0;
  auto named = tree.victims(20, [&](entry_key) { return ++asked > 0; });
  EXPECT_EQ(named.size(), 2u);
  EXPECT_EQ(asked, 2);
}

TEST(LeafTree, BreaksTiesBySecondRank) {
  leaf_tree tree;
  tree.insert({key(1), {}, 1}, {7, 2});
  tree.insert({key(2), {}, 1}, {7, 1});
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{2, 1}));
  tree.set_rank(key(1), {6, 9});
  EXPECT_EQ(order(tree), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(tree.rank_of(key(1)), (eviction_rank{6, 9}));
  EXPECT_FALSE(tree.rank_of(key(3)));
}

} // namespace
} // namespace terrace::testing
