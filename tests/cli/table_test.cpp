#include "cli/table.hpp"

#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

TEST(Table, AlignsColumnsToTheirWidestCell) {
  table t({{"tier", align::left}, {"used"}});
  t.add({"host", "1.50 GiB"});
  t.add({"d", "7 B"});
  EXPECT_EQ(t.to_string(), "  tier      used\n"
                           "  host  1.50 GiB\n"
                           "  d          7 B\n");
}

TEST(Table, HasNoTrailingSpaces) {
  table t({{"name", align::left}, {"state", align::left}});
  t.add({"a", "ready"});
  t.add({"b", ""});
  EXPECT_EQ(t.to_string(), "  name  state\n  a     ready\n  b\n");
}

TEST(Table, ACellCannotForgeARow) {
  table t({{"name", align::left}, {"n"}});
  t.add({"a\n  b  9", "1"});
  EXPECT_EQ(t.to_string(), "  name         n\n  a\\x0a  b  9  1\n");
}

TEST(Table, CountsCodePoints) {
  table t({{"name", align::left}, {"n"}});
  t.add({"größe", "1"});
  t.add({"short", "2"});
  EXPECT_EQ(t.to_string(), "  name   n\n  größe  1\n  short  2\n");
}

TEST(Table, FillsShortRows) {
  table t({{"a"}, {"b"}});
  t.add({"1"});
  EXPECT_EQ(t.to_string(), "  a  b\n  1\n");
}

TEST(Table, FactsHaveNoTitleLine) {
  EXPECT_EQ(format_facts({{"boot", "ab"}, {"uptime", "3 s"}}), "  boot    ab\n  uptime  3 s\n");
}

} // namespace
} // namespace terrace::cli
