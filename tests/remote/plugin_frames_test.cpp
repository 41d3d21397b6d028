#include "remote/plugin_frames.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace terrace::remote {
namespace plugin_frames_test {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class Number>
std::string raw(Number number) {
  std::string made(sizeof number, '\0');
  std::memcpy(made.data(), &number, sizeof number);
  return made;
}

std::string answer(plugin_verb verb, uint64_t number, const std::vector<int64_t>& numbers,
                   const std::string& text = {}, bool failed = false) {
  std::string made = "TPL1";
  made += static_cast<char>(verb);
  made += failed ? '\1' : '\0';
  made += raw(static_cast<uint16_t>(numbers.size())) + raw(number) + raw(static_cast<uint16_t>(text.size()));
  made += std::string(6, '\0');
  for (int64_t one : numbers)
    made += raw(one);
  return made + text;
}

/// A request for the keys "a" and "bc".
plugin_request request_of_two(plugin_verb verb) {
  plugin_request made(verb, 7);
  EXPECT_TRUE(made.add("a", 5'000) && made.add("bc", 1));
  return made;
}

TEST(PluginRequest, HasItsFieldsWhereTheyAreSaid) {
  const auto made = request_of_two(plugin_verb::get);
  EXPECT_EQ(made.frame(),
            "TPL1" + raw<uint16_t>(3) + raw<uint16_t>(2) + raw<uint64_t>(7) +                         //
                raw<uint16_t>(1) + raw<uint16_t>(0) + raw<uint32_t>(0) + raw<uint32_t>(5'000) + "a" + //
                raw<uint16_t>(2) + raw<uint16_t>(0) + raw<uint32_t>(8'192) + raw<uint32_t>(1) + "bc");
  EXPECT_EQ(made.offset(1), 8'192U);
}

TEST(PluginRequest, HasSoManyItemsBytesAndKeys) {
  plugin_request many(plugin_verb::exists, 1);
  for (size_t i = 0; i < plugin_items_max; ++i)
    EXPECT_TRUE(many.add("k", 0));
  EXPECT_FALSE(many.add("k", 0));
  plugin_request large(plugin_verb::get, 1);
  EXPECT_TRUE(large.add("k", plugin_buffer_bytes - 1));
  EXPECT_FALSE(large.add("k", 1));
  EXPECT_TRUE(large.add("k", 0));
  plugin_request long_keys(plugin_verb::exists, 1);
  size_t added = 0;
  while (long_keys.add(std::string(plugin_key_bytes_max, 'k'), 0))
    ++added;
  EXPECT_EQ(added, 125U);
  EXPECT_LE(long_keys.frame().size(), plugin_frame_bytes_max);
  EXPECT_EQ(long_keys.items(), added) << "what had no room is not in it";
}

TEST(PluginAnswer, HasANumberForEachItem) {
  const auto to = request_of_two(plugin_verb::get);
  auto told = parse_plugin_answer(bytes_of(answer(plugin_verb::get, 7, {5'000, -1})), to);
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_EQ(told->numbers, (std::vector<int64_t>{5'000, -1}));
  EXPECT_FALSE(told->failed);
  told = parse_plugin_answer(bytes_of(answer(plugin_verb::get, 7, {-2, -3}, "no\ndisk", true)), to);
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_TRUE(told->failed);
  EXPECT_EQ(told->text, "no\\x0adisk") << "control characters are escaped";
}

TEST(PluginAnswer, IsToThisRequest) {
  const auto to = request_of_two(plugin_verb::exists);
  EXPECT_TRUE(parse_plugin_answer(bytes_of(answer(plugin_verb::exists, 7, {0, 1})), to));
  for (const std::string& other :
       {answer(plugin_verb::get, 7, {0, 1}), answer(plugin_verb::exists, 6, {0, 1}),
        answer(plugin_verb::exists, 7, {0}), answer(plugin_verb::exists, 7, {0, 1, 1}),
        answer(plugin_verb::hello, 7, {0, 1})})
    EXPECT_FALSE(parse_plugin_answer(bytes_of(other), to));
}

TEST(PluginAnswer, HasOnlyNumbersThatMeanSomething) {
  const std::pair<plugin_verb, std::vector<int64_t>> wrong[] = {
      {plugin_verb::exists, {2, -1}}, {plugin_verb::get, {-4, INT64_MIN}}, {plugin_verb::put, {0, 2, -1}},
      {plugin_verb::make, {2, -1}},   {plugin_verb::remove, {0, -1}},
  };
  for (const auto& [verb, numbers] : wrong)
    for (int64_t number : numbers)
      EXPECT_FALSE(parse_plugin_answer(bytes_of(answer(verb, 7, {1, number})), request_of_two(verb)))
          << number;
  EXPECT_TRUE(parse_plugin_answer(bytes_of(answer(plugin_verb::get, 7, {0, INT64_MAX})),
                                  request_of_two(plugin_verb::get)))
      << "a value that is longer than any room";
}

TEST(PluginAnswer, HasItsExactLength) {
  const auto to = request_of_two(plugin_verb::put);
  const std::string good = answer(plugin_verb::put, 7, {1, 1}, "text");
  ASSERT_TRUE(parse_plugin_answer(bytes_of(good), to));
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_FALSE(parse_plugin_answer(bytes_of(good).first(bytes), to)) << bytes;
  EXPECT_FALSE(parse_plugin_answer(bytes_of(good + "x"), to));
  EXPECT_FALSE(parse_plugin_answer(
      bytes_of(answer(plugin_verb::put, 7, {1, 1}, std::string(plugin_text_bytes_max + 1, 't'))), to));
  EXPECT_FALSE(parse_plugin_answer(bytes_of(std::string(plugin_frame_bytes_max + 1, '\0')), to));
}

TEST(PluginAnswer, EveryChangedBitIsAnErrorOrAnotherNumberOrText) {
  const auto to = request_of_two(plugin_verb::put);
  const std::string good = answer(plugin_verb::put, 7, {1, 1}, "text");
  constexpr size_t numbers_at = 24;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string changed = good;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const bool is_flag = bit == 5 * 8, is_text = bit / 8 >= numbers_at + 16;
    EXPECT_EQ(parse_plugin_answer(bytes_of(changed), to).has_value(), is_flag || is_text) << bit;
  }
}

TEST(PluginAnswer, RandomBytesAreAnError) {
  std::mt19937 random(1);
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    if (i % 2 == 0)
      bytes = "TPL1" + bytes;
    EXPECT_FALSE(parse_plugin_answer(bytes_of(bytes), request_of_two(plugin_verb::get)));
    EXPECT_FALSE(parse_plugin_greeting(bytes_of(bytes)));
  }
}

TEST(PluginGreeting, HasANameAndAVersion) {
  auto told = parse_plugin_greeting(bytes_of(answer(plugin_verb::hello, 0, {}, "fs 1.2")));
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_EQ(told->name, "fs");
  EXPECT_EQ(told->version, "1.2");
  EXPECT_FALSE(told->refuses);
  told = parse_plugin_greeting(bytes_of(answer(plugin_verb::hello, 0, {}, "", false)));
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->name.empty() && told->version.empty());
  told = parse_plugin_greeting(bytes_of(answer(plugin_verb::hello, 0, {}, "no module", true)));
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->refuses);
  EXPECT_EQ(told->text, "no module");
}

TEST(PluginGreeting, IsNothingElse) {
  for (const std::string& other :
       {answer(plugin_verb::hello, 1, {}, "fs"), answer(plugin_verb::hello, 0, {1}, "fs"),
        answer(plugin_verb::get, 0, {}, "fs"), std::string("TPL2")})
    EXPECT_FALSE(parse_plugin_greeting(bytes_of(other)));
}

} // namespace plugin_frames_test
} // namespace terrace::remote
