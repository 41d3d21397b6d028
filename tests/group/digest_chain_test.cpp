#include "group/session_state.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

std::vector<digest> numbered(uint8_t mark, size_t count) {
  std::vector<digest> some(count);
  for (size_t i = 0; i < count; ++i)
    some[i].bytes = {mark, static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8)};
  return some;
}

TEST(DigestChain, IsExtendedAcrossSegments) {
  auto all = numbered(1, 200);
  digest_chain chain;
  for (size_t i = 0; i < all.size(); i += 10)
    chain = chain.extended(std::span(all).subspan(i, 10));
  EXPECT_EQ(chain.size(), 200U);
  EXPECT_EQ(chain.copy(), all);
  EXPECT_EQ(chain[130], all[130]);
}

TEST(DigestChain, IsCutAnywhereAndContinuedInTwoWays) {
  auto all = numbered(1, 150), left = numbered(2, 100), right = numbered(3, 3);
  auto chain = digest_chain().extended(all);
  for (size_t at : {0, 1, 63, 64, 65, 128, 149, 150}) {
    auto cut = chain.cut(at);
    auto expected = std::vector<digest>(all.begin(), all.begin() + static_cast<ptrdiff_t>(at));
    EXPECT_EQ(cut.copy(), expected) << at;
    auto one = cut.extended(left), other = cut.extended(right);
    auto begin = expected;
    expected.insert(expected.end(), left.begin(), left.end());
    EXPECT_EQ(one.copy(), expected) << at;
    begin.insert(begin.end(), right.begin(), right.end());
    EXPECT_EQ(other.copy(), begin) << at;
  }
  EXPECT_EQ(chain.copy(), all) << "the original has changed";
}

TEST(DigestChain, SharesTheSegmentsOfItsOriginal) {
  auto chain = digest_chain().extended(numbered(1, 640));
  auto cut = chain.cut(600), longer = chain.extended(numbered(2, 1));
  EXPECT_EQ(&cut[5], &chain[5]);
  EXPECT_EQ(&cut[599], &chain[599]);
  EXPECT_EQ(&longer[639], &chain[639]);
}

TEST(DigestChain, ACutDoesNotKeepTheSegmentsBehindIt) {
  auto chain = digest_chain().extended(numbered(1, 640));
  EXPECT_LT(chain.cut(64).bytes(), chain.bytes() / 5);
}

TEST(DigestChain, CountsWhatItKeepsOfABegunSegment) {
  auto chain = digest_chain().extended(numbered(1, 100));
  EXPECT_GE(chain.bytes(), 100 * sizeof(digest));
  EXPECT_GE(chain.cut(65).bytes(), 100 * sizeof(digest)) << "it shares all of the begun one";
  EXPECT_GE(chain.cut(1).bytes(), 64 * sizeof(digest)) << "and of a full one";
  EXPECT_LT(chain.cut(64).bytes(), 100 * sizeof(digest));
  EXPECT_EQ(chain.cut(0).bytes(), 0U);
}

TEST(DigestChain, AnExtensionWithinASegmentSharesTheListOfTheFullOnes) {
  auto chain = digest_chain().extended(numbered(1, 640));
  auto longer = chain.extended(numbered(2, 5)).extended(numbered(3, 5));
  EXPECT_EQ(&longer[639], &chain[639]);
  EXPECT_EQ(longer[644], numbered(2, 5)[4]);
  EXPECT_EQ(longer[649], numbered(3, 5)[4]);
}

TEST(DigestChain, AnExtensionByNothingIsTheSame) {
  auto chain = digest_chain().extended(numbered(1, 10)).cut(5);
  EXPECT_EQ(chain.extended({}).copy(), numbered(1, 5));
  EXPECT_EQ(digest_chain().extended({}).size(), 0U);
}

} // namespace
} // namespace terrace
