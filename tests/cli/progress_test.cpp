#include "captured_console.hpp"
#include "cli/console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace terrace::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Progress, BarFillsFromTheLeft) {
  EXPECT_EQ(progress_bar(0, 4), "[>   ]");
  EXPECT_EQ(progress_bar(0.5, 4), "[==> ]");
  EXPECT_EQ(progress_bar(1, 4), "[====]");
  EXPECT_EQ(progress_bar(7, 4), "[====]");
}

TEST(Progress, PrintsALineForEachTenthWithoutATerminal) {
  captured_console to;
  {
    progress p(to.get(), "replay", 100);
    for (int i = 0; i < 100; ++i)
      p.advance(1);
  }
  std::string text = to.err();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_THAT(text, HasSubstr("replay 10 %: 10/100"));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(Progress, RedrawsInPlaceOnATerminalAndWipesItself) {
  captured_console to(true);
  progress p(to.get(), "replay", 100);
  p.advance(1, "37 % hits");
  EXPECT_THAT(to.err(), HasSubstr("\r\x1b[Kreplay ["));
  EXPECT_THAT(to.err(), HasSubstr("37 % hits"));
  p.finish();
  EXPECT_TRUE(to.err().ends_with("\r\x1b[K"));
  EXPECT_THAT(to.err(), Not(HasSubstr("\n")));
}

} // namespace
} // namespace terrace::cli
