// Replies of a Redis server in pieces of any size, both versions of the protocol; bytes that are no reply; long texts.
#include "protocol/resp/reply_reader.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace terrace::resp {
namespace reply_reader_test {

using kind = reply_step::kind;

constexpr reply_limits small{
    .text_bytes_max = 32, .buffer_bytes = 16, .items_max = 12, .depth_max = 3, .value_bytes_max = 1000};

std::string shown(const reply_step& step) {
  std::string text(step.depth, ' ');
  switch (step.type) {
    case reply_type::simple: text += "simple " + std::string(step.text); break;
    case reply_type::error: text += "error " + std::string(step.text); break;
    case reply_type::integer: text += "integer " + std::to_string(step.number); break;
    case reply_type::text: text += "text " + std::string(step.text); break;
    case reply_type::null: text += "null"; break;
    case reply_type::boolean: text += "boolean " + std::to_string(step.number); break;
    case reply_type::real: text += "real " + std::string(step.text); break;
    case reply_type::large: text += "large " + std::string(step.text); break;
    case reply_type::array: text += "array " + std::to_string(step.items); break;
    case reply_type::set: text += "set " + std::to_string(step.items); break;
    case reply_type::map: text += "map " + std::to_string(step.items); break;
    case reply_type::attribute: text += "attribute " + std::to_string(step.items); break;
    case reply_type::push: text += "push " + std::to_string(step.items); break;
  }
  return text + (step.last ? "." : "");
}

/// Returns all steps of the stream. A value is received elsewhere except for what came along with its head.
std::vector<std::string> read_all(std::string_view stream, size_t piece, const reply_limits& limits = small) {
  reply_reader reader(limits);
  std::vector<std::string> all;
  while (true) {
    auto step = reader.next();
    if (!step) {
      EXPECT_EQ(step.error().code, errc::bad_request);
      all.push_back("! " + step.error().text);
      return all;
    }
    if (step->what == kind::more) {
      if (stream.empty()) {
        EXPECT_FALSE(reader.in_reply());
        return all;
      }
      auto area = reader.write_area();
      EXPECT_FALSE(area.empty());
      EXPECT_LE(area.size(), 4 * limits.text_bytes_max);
      size_t count = std::min({area.size(), stream.size(), piece});
      std::memcpy(area.data(), stream.data(), count);
      reader.commit(count);
      stream.remove_prefix(count);
      continue;
    }
    if (step->what != kind::value) {
      all.push_back(shown(*step));
      continue;
    }
    EXPECT_FALSE(step->last);
    std::string value(reader.take_value(3));
    value += reader.take_value();
    while (reader.value_left() != 0) {
      EXPECT_TRUE(reader.in_reply());
      auto part = stream.substr(0, std::min<size_t>(piece, reader.value_left()));
      value += part;
      stream.remove_prefix(part.size());
      reader.value_received(part.size());
    }
    EXPECT_EQ(value.size(), step->value_bytes);
    all.push_back("value " + value);
  }
}

void expect_steps(std::string_view stream, const std::vector<std::string>& steps) {
  for (size_t piece : {1u, 2u, 3u, 7u, 100'000u})
    EXPECT_EQ(read_all(stream, piece), steps) << "in pieces of " << piece;
}

TEST(ReplyReader, ReadsItemsOfBothVersions) {
  expect_steps("+OK\r\n-ERR no\r\n:-7\r\n$5\r\nhello\r\n$0\r\n\r\n$-1\r\n*-1\r\n",
               {"simple OK.", "error ERR no.", "integer -7.", "text hello.", "text .", "null.", "null."});
  expect_steps(
      "_\r\n#t\r\n#f\r\n,1.5\r\n,inf\r\n(123456789012345678901234567890\r\n!5\r\nERR x\r\n=5\r\ntxt:a\r\n",
      {"null.", "boolean 1.", "boolean 0.", "real 1.5.", "real inf.", "large 123456789012345678901234567890.",
       "error ERR x.", "text txt:a."});
}

TEST(ReplyReader, ReadsTextsWithAnyBytes) {
  std::string odd("\r\n\0$1\r", 6);
  expect_steps("$6\r\n" + odd + "\r\n", {"text " + odd + "."});
}

TEST(ReplyReader, TellsWhichItemCompletesAReply) {
  expect_steps(
      "*2\r\n*2\r\n:1\r\n:2\r\n*1\r\n$1\r\nx\r\n+next\r\n",
      {"array 2", " array 2", "  integer 1", "  integer 2", " array 1", "  text x.", "simple next."});
  expect_steps("*0\r\n%0\r\n~1\r\n:1\r\n", {"array 0.", "map 0.", "set 1", " integer 1."});
  expect_steps("%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n",
               {"map 4", " simple a", " integer 1", " simple b", " array 0."});
}

TEST(ReplyReader, ReadsWhatIsPushedBetweenReplies) {
  expect_steps(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n:1\r\n",
               {"push 2", " text invalidate", " array 1", "  text k.", "integer 1."});
}

TEST(ReplyReader, AnAttributeIsNoItem) {
  expect_steps("|1\r\n+ttl\r\n:9\r\n*2\r\n|0\r\n:1\r\n|1\r\n+a\r\n+b\r\n:2\r\n",
               {"attribute 2", " simple ttl", " integer 9", "array 2", " attribute 0", " integer 1",
                " attribute 2", "  simple a", "  simple b", " integer 2."});
}

TEST(ReplyReader, ALongTextIsReceivedElsewhere) {
  std::string value(500, 'v');
  expect_steps("$500\r\n" + value + "\r\n:1\r\n", {"value " + value, "text .", "integer 1."});
  expect_steps("*2\r\n$500\r\n" + value + "\r\n$33\r\n" + value.substr(0, 33) + "\r\n",
               {"array 2", "value " + value, " text ", "value " + value.substr(0, 33), " text ."});
  expect_steps("!40\r\n" + value.substr(0, 40) + "\r\n", {"value " + value.substr(0, 40), "error ."});
}

TEST(ReplyReader, TheBufferReturnsToItsSize) {
  reply_reader reader(small);
  for (int round = 0; round < 100; ++round) {
    for (char c : std::string("$32\r\n") + std::string(32, 'x') + "\r\n") {
      reader.write_area()[0] = c;
      reader.commit(1);
    }
    EXPECT_EQ(reader.next()->text.size(), 32u);
    EXPECT_EQ(reader.next()->what, kind::more);
    EXPECT_EQ(reader.write_area().size(), small.buffer_bytes);
  }
}

TEST(ReplyReader, SaysWhatItExpected) {
  struct {
    const char* stream;
    const char* expected;
  } cases[] = {
      {"HTTP/1.1 400\r\n", "a reply was expected, not the byte 72"},
      {"+OK\n", "a carriage return was expected"},
      {"\r\n", "a reply was expected, not the byte 13"},
      {":\r\n", "an integer of 64 bits was expected"},
      {":9223372036854775808\r\n", "an integer of 64 bits was expected"},
      {":1x\r\n", "an integer of 64 bits was expected"},
      {"#x\r\n", "a boolean, t or f, was expected"},
      {"_1\r\n", "nothing was expected behind a null"},
      {"$\r\n", "the length of a text, 0 to 1000, was expected"},
      {"$-2\r\n", "the length of a text, 0 to 1000, was expected"},
      {"!-1\r\n", "the length of a text, 0 to 1000, was expected"},
      {"$1001\r\n", "the length of a text, 0 to 1000, was expected"},
      {"$18446744073709551616\r\n", "the length of a text, 0 to 1000, was expected"},
      {"$?\r\n", "the length of a text, 0 to 1000, was expected"},
      {"$2\r\nabc\r\n", "the end of a line was expected behind a text of 2 bytes"},
      {"*?\r\n", "a number of items, 0 to 12, was expected"},
      {"*13\r\n", "a number of items, 0 to 12, was expected"},
      {">-1\r\n", "a number of items, 0 to 12, was expected"},
      {"*1\r\n*1\r\n*1\r\n*1\r\n", "at most 3 arrays in arrays were expected"},
      {"*6\r\n*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
       "a reply of at most 12 items was expected"},
      {"|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n",
       "a reply of at most 12 items was expected"},
      {"+0123456789012345678901234567890123456789\r\n", "a line of at most 32 bytes was expected"},
  };
  for (auto& c : cases)
    for (size_t piece : {1u, 5u, 1000u}) {
      auto steps = read_all(c.stream, piece);
      ASSERT_FALSE(steps.empty()) << c.stream;
      EXPECT_NE(steps.back().find(c.expected), std::string::npos) << c.stream << ": " << steps.back();
    }
  auto steps = read_all("$40\r\n" + std::string(40, 'v') + "xy", 1000);
  EXPECT_NE(steps.back().find("the end of a line was expected behind a text"), std::string::npos)
      << steps.back();
}

// A line without an end is refused before it fills memory.
TEST(ReplyReader, ALineHasAnEnd) {
  reply_reader reader(small);
  for (int i = 0; i < 100; ++i) {
    auto area = reader.write_area();
    area[0] = i == 0 ? '+' : 'x';
    reader.commit(1);
    auto step = reader.next();
    if (!step) {
      EXPECT_EQ(i, 33);
      return;
    }
  }
  FAIL() << "a line of 100 bytes";
}

} // namespace reply_reader_test
} // namespace terrace::resp
