#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(Printable, KnowsUtf8) {
  for (const char* text : {"", "plain", "gr\u00f6\u00dfe", "\u20ac", "\U0001f600"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text :
       {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "a\xc3(b"})
    EXPECT_FALSE(is_utf8(text)) << printable(text);
}

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("gr\u00f6\u00dfe 1.50 GiB \\"), "gr\u00f6\u00dfe 1.50 GiB \\");
}

TEST(Printable, EscapesWhatActsOnATerminal) {
  EXPECT_EQ(printable("a\nb\r\t"), "a\\x0ab\\x0d\\x09");
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("\x7f\u0085\u2028\u202e"), "\\x7f\\u0085\\u2028\\u202e");
  EXPECT_EQ(printable("a\xff"), "a\\xff");
}

} // namespace
} // namespace terrace
