#include "cli/trace.hpp"
#include "temporary_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

namespace terrace::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string good =
    R"({"timestamp": 5, "input_length": 1100, "output_length": 7, "hash_ids": [0, 14, 15]})";

void expect_refused(const std::string& line, const std::string& text) {
  auto request = parse_trace_line(line);
  ASSERT_FALSE(request.has_value()) << line;
  EXPECT_EQ(request.error().code, exit_code::usage);
  EXPECT_THAT(request.error().text, HasSubstr(text));
}

std::string replaced(std::string line, const std::string& from, const std::string& to) {
  return line.replace(line.find(from), from.size(), to);
}

void write_gzipped(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

TEST(TraceLine, HoldsARequest) {
  auto request = parse_trace_line(good);
  ASSERT_TRUE(request.has_value()) << request.error().text;
  EXPECT_EQ(request->timestamp_ms, 5U);
  EXPECT_EQ(request->input_length, 1100U);
  EXPECT_EQ(request->output_length, 7U);
  EXPECT_THAT(request->hash_ids, ElementsAre(0, 14, 15));
  EXPECT_EQ(request->full_blocks(), 2U);
}

TEST(TraceLine, IgnoresKeysItDoesNotKnow) {
  EXPECT_TRUE(parse_trace_line(replaced(good, "{", R"({"model": [1, {"a": null}], )")).has_value());
}

TEST(TraceLine, KeepsSessionAndTurn) {
  auto request = parse_trace_line(replaced(good, "{", R"({"session_id": "s1", "turn": 3, )"));
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->session_id, "s1");
  EXPECT_EQ(request->turn, 3U);
  EXPECT_EQ(parse_trace_line(replaced(good, "{", R"({"session_id": 17, )"))->session_id, "17");
}

TEST(TraceLine, KeepsWhatIsToldOfItsEnd) {
  std::string line =
      replaced(good, "{", R"({"finish_reason": "tool_call", "session_closed": true, "think_ms": 1500, )");
  auto request = parse_trace_line(line);
  ASSERT_TRUE(request.has_value()) << request.error().text;
  EXPECT_EQ(request->reason, finish_reason::tool_call);
  EXPECT_TRUE(request->session_closed);
  EXPECT_EQ(request->think_ms, 1500U);
  EXPECT_EQ(parse_trace_line(format_trace_line(*request)).value(), *request);
  expect_refused(replaced(good, "{", R"({"finish_reason": "bored", )"),
                 R"(one of unknown, stop, length, tool_call, aborted, found "bored")");
  expect_refused(replaced(good, "{", R"({"session_closed": 1, )"), "true or false, found 1");
  expect_refused(replaced(good, "{", R"({"think_ms": -1, )"), "\"think_ms\" to be a whole number");
}

TEST(TraceLine, MayLeaveOutTheBegunBlock) {
  EXPECT_TRUE(parse_trace_line(replaced(good, "[0, 14, 15]", "[0, 14]")).has_value());
}

TEST(TraceLine, SaysWhatWasExpected) {
  expect_refused("hello", "expected a JSON object, but column 1 is not JSON");
  expect_refused(good.substr(0, 40), "is not JSON");
  expect_refused("[1]", "expected a JSON object, found an array: a trace has");
  expect_refused(R"({"timestamp": 0})", "expected the key \"input_length\"");
  expect_refused(replaced(good, "5", "-5"), "expected \"timestamp\" to be a whole number");
  expect_refused(replaced(good, "1100", "\"1100\""), "found \"1100\"");
  expect_refused(replaced(good, "1100", "99999999"), "from 0 to 2097152, found 99999999");
  expect_refused(replaced(good, "[0, 14, 15]", "7"), "an array of block ids");
  expect_refused(replaced(good, "14", "-14"), "\"hash_ids\"[1] to be a whole number, found -14");
  expect_refused(replaced(good, "[0, 14, 15]", "[0]"), "expected 3 hash_ids for an input_length of 1100");
  expect_refused(replaced(good, "[0, 14, 15]", "[0, 1, 2, 3]"), "found 4");
  expect_refused(replaced(good, "1100", "1e999"), "expected a JSON object");
}

TEST(TraceFile, IsReadPlainAndGzipped) {
  std::string text = good + "\r\n\n" + good; // a foreign line end, an empty line, no end at the end
  temporary_file plain(text), gzipped;
  write_gzipped(gzipped.path(), text);
  for (const std::string& path : {plain.path(), gzipped.path()}) {
    auto loaded = load_trace(path);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    EXPECT_EQ(loaded->requests.size(), 2U);
  }
}

TEST(TraceFile, IsReadUpToTheLimit) {
  temporary_file file(good + "\n" + good + "\nnonsense behind the limit");
  EXPECT_EQ(load_trace(file.path(), 2)->requests.size(), 2U);
}

TEST(TraceFile, NamesFileAndLineOfAMistake) {
  temporary_file file(good + "\n\n" + "{]\n");
  auto loaded = load_trace(file.path());
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().text, HasSubstr(file.path() + ":3: expected a JSON object"));
}

TEST(TraceFile, WithoutRequestsIsRefused) {
  temporary_file file("\n\n");
  EXPECT_THAT(load_trace(file.path()).error().text, HasSubstr("expected at least one request"));
}

TEST(TraceFile, ATruncatedArchiveIsRefused) {
  temporary_file whole, cut;
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += replaced(good, "5", std::to_string(i * 7919)) + "\n";
  write_gzipped(whole.path(), text);
  std::string bytes = whole.text();
  std::ofstream(cut.path(), std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  auto loaded = load_trace(cut.path());
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().text, HasSubstr("damaged or truncated"));
}

TEST(TraceFile, LinesLongerThanTheReadBufferAreWhole) {
  std::string long_line = replaced(good, "{", "{\"pad\": \"" + std::string(600'000, 'x') + "\", ");
  temporary_file file(long_line + "\n" + good + "\n");
  auto loaded = load_trace(file.path());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
  EXPECT_EQ(loaded->requests.size(), 2U);
}

} // namespace
} // namespace terrace::cli
