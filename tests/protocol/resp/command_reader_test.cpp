// Commands as clients send them, in pieces of any size; bytes that are no command; long words.
#include "protocol/resp/command_reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace terrace::resp {
namespace {

using kind = reader_step::kind;

/// Puts as many bytes into the reader as it has room for.
size_t put(command_reader& reader, std::string_view bytes) {
  auto area = reader.write_area();
  size_t count = std::min(area.size(), bytes.size());
  std::memcpy(area.data(), bytes.data(), count);
  reader.commit(count);
  return count;
}

std::string shown(const reader_step& step) {
  std::string text;
  for (std::string_view word : step.words)
    text += (text.empty() ? "" : "|") + std::string(word);
  return text;
}

/// Returns all commands of the stream; a long word is shown by its length and its first byte.
std::vector<std::string> read_all(command_reader& reader, std::string_view stream, size_t piece) {
  std::vector<std::string> all;
  std::string open;
  while (true) {
    auto step = reader.next();
    if (!step) {
      all.push_back("error: " + step.error().text);
      return all;
    }
    if (step->what == kind::more) {
      if (stream.empty())
        return all;
      stream.remove_prefix(put(reader, stream.substr(0, piece)));
      continue;
    }
    open += (step->continued && !step->words.empty() ? "|" : "") + shown(*step);
    if (step->what == kind::command) {
      all.push_back(std::exchange(open, ""));
      continue;
    }
    open += "|<" + std::to_string(step->value_bytes) + ":";
    std::string value(reader.take_value());
    while (reader.value_left() != 0) { // the rest is received elsewhere
      auto part = stream.substr(0, std::min<size_t>(piece, reader.value_left()));
      value += part;
      stream.remove_prefix(part.size());
      reader.value_received(part.size());
    }
    open += std::string(1, value.front()) + ">";
    EXPECT_EQ(value, std::string(value.size(), value.front()));
  }
}

std::string bulk(std::string_view word) {
  return "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
}
std::string call(std::initializer_list<std::string_view> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (std::string_view word : words)
    text += bulk(word);
  return text;
}

constexpr reader_limits small{.words_max = 9,
                              .word_bytes_max = 64,
                              .buffer_bytes = 128,
                              .command_bytes_max = 512,
                              .value_bytes_max = 4096};

TEST(CommandReader, ReadsCommandsInPiecesOfAnySize) {
  std::string value(300, 'v');
  std::string stream = call({"GET", "k"}) + "PING\r\n" + "\r\n" + "*0\r\n" + call({"SET", "key", value}) +
                       "  ECHO \t hello \n" + call({"MSET", "a", "1", "b", value, "c", "", "d", value}) +
                       call({"SET", "", ""});
  std::vector<std::string> wanted{
      "GET|k", "PING", "SET|key|<300:v>", "ECHO|hello", "MSET|a|1|b|<300:v>|c||d|<300:v>", "SET||"};
  for (size_t piece = 1; piece < 400; piece += piece < 20 ? 1 : 37) {
    command_reader reader(small);
    EXPECT_EQ(read_all(reader, stream, piece), wanted) << piece;
    EXPECT_FALSE(reader.in_command());
  }
}

TEST(CommandReader, ALongCommandGetsALargerBufferAndGivesItBack) {
  std::string stream = call({"MGET", std::string(60, 'a'), std::string(60, 'b'), std::string(60, 'c')});
  command_reader reader(small);
  EXPECT_EQ(read_all(reader, stream, 1000).size(), 1u);
  EXPECT_EQ(reader.write_area().size(), small.buffer_bytes);
}

TEST(CommandReader, NamesWhatIsNoCommand) {
  struct {
    std::string stream, error;
  } wrong[] = {
      {"*10\r\n", "invalid multibulk length"},
      {"*-1\r\n", "invalid multibulk length"},
      {"*x\r\n", "invalid multibulk length"},
      {"*" + std::string(40, '1'), "invalid multibulk length"},
      {"*1\r\n:1\r\n", "expected '$'"},
      {"*1\r\n$-1\r\n", "invalid bulk length"},
      {"*1\r\n$4097\r\n", "invalid bulk length"},
      {"*1\r\n$99999999999999999999\r\n", "invalid bulk length"},
      {"*1\r\n$3\r\nGETxx", "expected the end of a line"},
      {"*2\r\n$3\r\nGET\r\n$65\r\n" + std::string(65, 'v') + "xx",
       "expected the end of a line behind a value"},
      {std::string(70, 'p'), "a line has more than 64 bytes"},
      {"a b c d e f g h i j\r\n", "too many words"},
      {"*8\r\n" + bulk(std::string(64, 'a')) + bulk(std::string(64, 'a')) + bulk(std::string(64, 'a')) +
           bulk(std::string(64, 'a')) + bulk(std::string(64, 'a')) + bulk(std::string(64, 'a')) +
           bulk(std::string(64, 'a')) + bulk(std::string(64, 'a')),
       "a command has more than 512 bytes"},
  };
  for (const auto& each : wrong)
    for (size_t piece : {1u, 1000u}) {
      command_reader reader(small);
      auto all = read_all(reader, each.stream, piece);
      ASSERT_FALSE(all.empty()) << each.stream;
      EXPECT_NE(all.back().find(each.error), std::string::npos) << each.stream << ": " << all.back();
    }
}

TEST(CommandReader, KnowsWhetherACommandHasBegun) {
  command_reader reader;
  EXPECT_FALSE(reader.in_command());
  put(reader, "*2\r\n$3\r\nGET\r\n");
  EXPECT_EQ(reader.next()->what, kind::more);
  EXPECT_TRUE(reader.in_command());
  put(reader, "$1\r\nk\r\n");
  EXPECT_EQ(reader.next()->what, kind::command);
  EXPECT_FALSE(reader.in_command());
}

TEST(CommandReader, TellsHowManyWordsFollowALongOne) {
  command_reader reader(small);
  std::string stream = call({"SET", "k", std::string(100, 'v'), "EX", "10"});
  put(reader, stream);
  auto step = reader.next();
  ASSERT_TRUE(step);
  EXPECT_EQ(step->what, kind::value);
  EXPECT_EQ(step->words_left, 2u);
  EXPECT_EQ(step->value_bytes, 100u);
  EXPECT_FALSE(step->continued);
}

TEST(CommandReader, ManyEmptyLinesTakeNoStack) {
  command_reader reader;
  std::string lines(60'000, '\n');
  put(reader, lines);
  EXPECT_EQ(reader.next()->what, kind::more);
}

} // namespace
} // namespace terrace::resp
