#include "memory/region_populator.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

/// Returns how many pages are not asked for before the next one is.
uint32_t pause(large_page_supply& supply) {
  uint32_t left_out = 0;
  while (!supply.may_ask())
    ++left_out;
  return left_out;
}

TEST(LargePageSupply, IsAskedAsLongAsItGives) {
  large_page_supply supply;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(supply.may_ask());
    supply.answered(large_page_answer::made);
  }
}

TEST(LargePageSupply, IsAskedLessOftenWithEachRefusal) {
  large_page_supply supply;
  for (uint32_t expected : {1, 4, 16, 64, 256, 1024, 4096, 4096}) {
    supply.answered(expected < 64 ? large_page_answer::refused : large_page_answer::slow);
    EXPECT_EQ(pause(supply), expected);
  }
  EXPECT_EQ(large_page_supply::pause_max, 4096u);
}

TEST(LargePageSupply, IsTrustedAgainWithEachOneThatIsMade) {
  large_page_supply supply;
  supply.answered(large_page_answer::refused);
  supply.answered(large_page_answer::refused);
  EXPECT_EQ(pause(supply), 4u);
  supply.answered(large_page_answer::made);
  EXPECT_TRUE(supply.may_ask());
  supply.answered(large_page_answer::slow);
  EXPECT_EQ(pause(supply), 8u); // instead of 16
  for (int i = 0; i < 10; ++i)
    supply.answered(large_page_answer::made);
  supply.answered(large_page_answer::slow);
  EXPECT_EQ(pause(supply), 1u);
}

/// A machine that never gives a large page is asked a bounded number of times, however much is loaded.
TEST(LargePageSupply, ThatGivesNothingCostsLittle) {
  large_page_supply supply;
  constexpr uint64_t tebibyte = 1ULL << 40;
  uint64_t asked = 0;
  for (uint64_t page = 0; page < tebibyte / large_page_bytes; ++page)
    if (supply.may_ask()) {
      ++asked;
      supply.answered(large_page_answer::refused);
    }
  EXPECT_LE(asked, 140u);
}

TEST(LargePageSupply, DoesNotPauseForOneMappingThatCannotHaveThem) {
  large_page_supply supply;
  supply.answered(large_page_answer::impossible);
  EXPECT_TRUE(supply.may_ask());
}

TEST(LargePageSupply, CountsItsAnswers) {
  large_page_supply supply;
  for (auto each : {large_page_answer::made, large_page_answer::slow, large_page_answer::made,
                    large_page_answer::refused, large_page_answer::impossible})
    supply.answered(each);
  EXPECT_EQ(supply.answers(), (std::array<uint64_t, large_page_answers>{2, 1, 1, 1}));
}

} // namespace
} // namespace terrace
