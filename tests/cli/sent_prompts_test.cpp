#include "cli/sent_prompts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace terrace::cli;

TEST(SentPrompts, PromptsHaveTheSameTokensUpToTheirFirstDifferentChunk) {
  std::vector<uint64_t> one{1, 2, 3}, other{1, 2, 4};
  auto first = tokens_of(one, 16), second = tokens_of(other, 16);
  ASSERT_EQ(first.size(), 48U);
  auto differ = std::mismatch(first.begin(), first.end(), second.begin()).first - first.begin();
  EXPECT_EQ(differ, 32);
  EXPECT_EQ(tokens_of(one, 16), first);
}

TEST(SentPrompts, TokensOfAChunkDiffer) {
  std::vector<uint64_t> ids{7, 8};
  auto tokens = tokens_of(ids, 256);
  EXPECT_EQ(std::set<uint32_t>(tokens.begin(), tokens.end()).size(), 512U);
}
