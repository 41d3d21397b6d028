#include "base/printable.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(ReadableBytes, HaveThreeDigitsAndAPowerOf1024) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1024), "1.00 KiB");
  EXPECT_EQ(readable_bytes(1536), "1.50 KiB");
  EXPECT_EQ(readable_bytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(readable_bytes(8 << 20), "8.00 MiB");
  EXPECT_EQ(readable_bytes(uint64_t{12345} << 20), "12.1 GiB");
  EXPECT_EQ(readable_bytes(64ULL << 30), "64.0 GiB");
  EXPECT_EQ(readable_bytes(700ULL << 40), "700 TiB");
  EXPECT_EQ(readable_bytes(UINT64_MAX), "16384 PiB");
}

TEST(Counts, HaveCommasAndNouns) {
  for (const auto& [count, text] : {std::pair<uint64_t, const char*>{0, "0"},
                                    {999, "999"},
                                    {1'000, "1,000"},
                                    {12'031, "12,031"},
                                    {999'999, "999,999"},
                                    {1'000'000, "1,000,000"}})
    EXPECT_EQ(format_count(count), text);
  EXPECT_EQ(format_counted(1, "client"), "1 client");
  EXPECT_EQ(format_counted(0, "client"), "0 clients");
  EXPECT_EQ(format_counted(2'417, "object"), "2,417 objects");
}

TEST(ReadableBytes, OfAChangeAreExactWhereTheyWouldReadTheSame) {
  EXPECT_EQ(readable_change(64 << 20, " instead of ", 128 << 20), "64.0 MiB instead of 128 MiB");
  EXPECT_EQ(readable_change((8 << 20) - 4096, " of ", 8 << 20), "8384512 bytes of 8388608 bytes");
  EXPECT_EQ(readable_change(5, " of ", 5), "5 B of 5 B");
}
