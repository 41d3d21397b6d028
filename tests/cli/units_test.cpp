#include "cli/units.hpp"

#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

TEST(Units, RatesArePowersOf1000) {
  EXPECT_EQ(format_rate(0), "0.00 B/s");
  EXPECT_EQ(format_rate(3.42e9), "3.42 GB/s");
}

TEST(Units, DurationsTakeTheUnitThatFits) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(870), "870 ns");
  EXPECT_EQ(format_duration(47'900), "47.9 us");
  EXPECT_EQ(format_duration(3.42e6), "3.42 ms");
  EXPECT_EQ(format_duration(1.5e9), "1.50 s");
  EXPECT_EQ(format_duration(200e9), "3 min 20 s");
  EXPECT_EQ(format_duration(7500e9), "2 h 05 min");
}

TEST(Units, APartIsOfOneOrMany) {
  EXPECT_EQ(format_part(1, 1, "chunk"), "1 of 1 chunk");
  EXPECT_EQ(format_part(1, 2'000, "chunk"), "1 of 2,000 chunks");
}

TEST(Units, SizesAreReadWithAndWithoutUnit) {
  EXPECT_EQ(parse_bytes("4096").value(), 4096U);
  EXPECT_EQ(parse_bytes("64KiB").value(), 65536U);
  EXPECT_EQ(parse_bytes("1.5 gib").value(), 3ULL << 29);
  EXPECT_EQ(parse_bytes("7 B").value(), 7U);
}

TEST(Units, OtherSizesAreRefused) {
  for (const char* text : {"", "many", "-1", "4 apples", "1Ki", "KiB", "nan", "1e40"}) {
    auto size = parse_bytes(text);
    ASSERT_FALSE(size.has_value()) << text;
    EXPECT_EQ(size.error().code, exit_code::usage);
  }
  for (const char* text : {"4GB", "4G", "4gb", "4 GB"})
    EXPECT_NE(parse_bytes(text).error().text.find("; did you mean \"4GiB\"?"), std::string::npos) << text;
  EXPECT_NE(parse_bytes("1.5MB").error().text.find("\"1.5MiB\""), std::string::npos);
}

} // namespace
} // namespace terrace::cli
