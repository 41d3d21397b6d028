#include "daemon/settings_units.hpp"

#include <gtest/gtest.h>

#include <random>

namespace terrace {
namespace {

using namespace std::chrono_literals;

TEST(SettingsUnits, AUnitThatResemblesOneIsSuggested) {
  for (auto [text, meant] :
       {std::pair{"4GB", "4GiB"}, {"4G", "4GiB"}, {"4gib", "4GiB"}, {"512 MB", "512MiB"}, {"1kb", "1KiB"}}) {
    auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_NE(parsed.error().text.find("did you mean \"" + std::string(meant) + "\"?"), std::string::npos)
        << parsed.error().text;
  }
  EXPECT_EQ(parse_duration("5S").error().text, "has the unknown unit 'S'; did you mean \"5s\"?");
  EXPECT_EQ(parse_bytes("4bits").error().text, "has the unknown unit 'bits'");
}

TEST(ByteSizes, AreInPowersOf1024) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("4096B"), 4096u);
  EXPECT_EQ(parse_bytes("64KiB"), 65536u);
  EXPECT_EQ(parse_bytes("2 TiB"), 2ULL << 40);
}

TEST(ByteSizes, RefuseWhatIsAmbiguousOrTooLarge) {
  for (auto text : {"", " 1", "1GB", "1g", "1.5GiB", "-1", "+1", "GiB", "1  GiB", "1GiB ", "1 ", "0x10",
                    "18446744073709551616", "16777216TiB"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(Durations, HaveAUnit) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("60s"), 60s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("1h"), 1h);
  for (auto text : {"", "60", "60sec", "-1s", "1d", "18446744073709551615ms", "9223372036854775808ms"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Permissions, AreOctal) {
  EXPECT_EQ(parse_permissions("0660"), 0660u);
  EXPECT_EQ(parse_permissions("7"), 7u);
  for (auto text : {"", "0888", "01777", "rw", "0660 "})
    EXPECT_FALSE(parse_permissions(text)) << text;
}

TEST(WriteRates, AreSizesForASecondOrADay) {
  EXPECT_EQ(parse_write_rates("").value(), write_rates());
  EXPECT_EQ(parse_write_rates("200MiB/s").value(), (write_rates{.bytes_per_second = 200ULL << 20}));
  EXPECT_EQ(parse_write_rates("2TiB/day").value(), (write_rates{.bytes_per_day = 2ULL << 40}));
  const write_rates both{.bytes_per_day = 2ULL << 40, .bytes_per_second = 4096};
  EXPECT_EQ(parse_write_rates("4KiB/s, 2TiB/day").value(), both);
  EXPECT_EQ(parse_write_rates("2TiB/day,4 KiB/s").value(), both);
}

TEST(WriteRates, SayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"200MiB", "neither"},
      {"200MiB/h", "neither"},
      {"200MiB/s,", "neither"},
      {", 2TiB/day", "neither"},
      {"200MB/s", "has a size that has the unknown unit 'MB'; did you mean \"200MiB/s\"?"},
      {"2TiB/day, 50MB/s", "has the unknown unit 'MB'; did you mean \"2TiB/day, 50MiB/s\"?"},
      {"/s", "does not begin with a whole number"},
      {"0/s", "is not between 4KiB and 1TiB"},
      {"2TiB/s", "has 2TiB behind \"/s\", which is not between 4KiB and 1TiB"},
      {"1KiB/day", "is not between 1MiB and 1024TiB"},
      {"1MiB/s, 2MiB/s", "has two sizes with \"/s\""},
  };
  for (const auto& [text, problem] : cases) {
    auto parsed = parse_write_rates(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().text.find(problem), std::string::npos) << text << ": " << parsed.error().text;
  }
}

TEST(WriteRates, SuggestNothingThatIsWrongAsWell) {
  EXPECT_EQ(parse_write_rates("9TB/s").error().text, "has a size that has the unknown unit 'TB'");
  EXPECT_EQ(parse_write_rates("1MiB/s, 2MB/s").error().text, "has a size that has the unknown unit 'MB'");
}

TEST(Suggestions, AreTakenOutOfTheText) {
  std::string wrong = "has the unknown unit 'GB'; did you mean \"4GiB\"?";
  EXPECT_EQ(take_suggestion(wrong), "4GiB");
  EXPECT_EQ(wrong, "has the unknown unit 'GB'");
  EXPECT_EQ(take_suggestion(wrong), "");
  EXPECT_EQ(wrong, "has the unknown unit 'GB'");
}

TEST(Units, ReadWhatTheyWrote) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1000; ++i) {
    auto bytes = random() >> (random() % 64) << (random() % 40);
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
    auto duration = std::chrono::milliseconds(random() % 100'000'000'000);
    EXPECT_EQ(parse_duration(format_duration(duration)), duration);
    auto mode = static_cast<uint32_t>(random() % 01000);
    EXPECT_EQ(parse_permissions(format_permissions(mode)), mode);
  }
}

TEST(Units, WriteAShortForm) {
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_bytes(1ULL << 30), "1GiB");
  EXPECT_EQ(format_bytes(1025), "1025B");
  EXPECT_EQ(format_duration(60s), "60s");
  EXPECT_EQ(format_duration(2h), "2h");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(0ms), "0s");
  EXPECT_EQ(format_permissions(0600), "0600");
}

} // namespace
} // namespace terrace
