#include "cli/trace_conversion.hpp"

#include "cli/trace_statistics.hpp"
#include "temporary_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

namespace terrace::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct TraceConversion : ::testing::Test {
  conversion convert(const std::string& text, const conversion_options& with = {}) {
    write(text);
    auto made = convert_trace(file, with);
    if (!made)
      throw std::runtime_error(made.error().text);
    // A reader of traces accepts what was made.
    for (const trace_request& request : made->made.requests) {
      auto again = parse_trace_line(format_trace_line(request), {.block_tokens = made->block_tokens});
      if (!again)
        throw std::runtime_error(again.error().text);
      EXPECT_EQ(*again, request);
    }
    return *made;
  }
  std::string refused(const std::string& text, const conversion_options& with = {}) {
    write(text);
    auto made = convert_trace(file, with);
    EXPECT_FALSE(made) << text;
    if (made)
      return {};
    EXPECT_EQ(made.error().code, exit_code::usage);
    return made.error().text;
  }
  void write(const std::string& text) { std::ofstream(file, std::ios::binary | std::ios::trunc) << text; }

  temporary_file kept;
  std::string file = kept.path();
};

TEST_F(TraceConversion, AzuresTimesAreDatesAndNothingIsShared) {
  auto made = convert("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                      "2023-11-16 18:17:04.0314600,3180,8\r\n"
                      "2023-11-16 18:17:03.9799600,4808,10\r\n"
                      "2024-02-29 00:00:00.5+00:00,1024,0\r\n");
  EXPECT_EQ(made.from, trace_source::azure);
  ASSERT_EQ(made.made.requests.size(), 3u);
  EXPECT_EQ(made.made.requests[0].timestamp_ms, 0u) << "in the order of time";
  EXPECT_EQ(made.made.requests[0].input_length, 4808u);
  EXPECT_EQ(made.made.requests[0].hash_ids.size(), 10u);
  EXPECT_EQ(made.made.requests[1].timestamp_ms, 52u);
  EXPECT_EQ(made.made.requests[1].output_length, 8u);
  EXPECT_EQ(made.made.requests[2].hash_ids.size(), 2u);
  EXPECT_EQ(measure(made.made).infinite_hit_ratio(), 0);
  EXPECT_THAT(made.assumed, HasSubstr("nothing can be hit"));
}

TEST_F(TraceConversion, BurstGptsSessionsGoOn) {
  auto alone = convert("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                       "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,230,1317,API log\n");
  EXPECT_EQ(alone.from, trace_source::burstgpt);
  EXPECT_EQ(alone.made.requests[1].timestamp_ms, 40'000u);
  EXPECT_EQ(measure(alone.made).infinite_hit_ratio(), 0);
  auto sessions =
      convert("Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
              "5,7,1,ChatGPT,1100,18,1118,Conversation log\n"
              "6,8,1,ChatGPT,1100,18,1118,Conversation log\n"
              "9.5,7,1,ChatGPT,1700,20,1720,Conversation log\n"
              "20,7,1,ChatGPT,600,20,620,Conversation log\n");
  const auto& all = sessions.made.requests;
  ASSERT_EQ(all.size(), 4u);
  EXPECT_THAT(all[0].hash_ids, ElementsAre(0, 1, 2));
  EXPECT_THAT(all[1].hash_ids, ElementsAre(3, 4, 5));
  EXPECT_THAT(all[2].hash_ids, ElementsAre(0, 1, 6, 7)) << "the block that was begun has another end now";
  EXPECT_THAT(all[3].hash_ids, ElementsAre(8, 9)) << "shorter than before: another conversation";
  EXPECT_EQ(all[2].turn, 2u);
  EXPECT_EQ(all[2].timestamp_ms, 4'500u);
  EXPECT_THAT(sessions.assumed, HasSubstr("is taken to begin with it"));
}

TEST_F(TraceConversion, BailiansBlocksBecomePrefixes) {
  const std::string lines =
      R"({"chat_id": 7, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "output_length": 9, "type": "text", "turn": 1, "hash_ids": [4, 9, 2]})"
      "\n"
      R"({"chat_id": 8, "parent_chat_id": 7, "timestamp": 61.25, "input_length": 70, "output_length": 9, "type": "text", "turn": 2, "hash_ids": [4, 9, 2, 5, 1]})"
      "\n"
      R"({"chat_id": 9, "parent_chat_id": -1, "timestamp": 70, "input_length": 33, "output_length": 9, "turn": 1, "hash_ids": [9, 4, 2]})"
      "\n";
  auto made = convert(lines);
  EXPECT_EQ(made.from, trace_source::bailian);
  EXPECT_EQ(made.block_tokens, 16u);
  EXPECT_EQ(made.assumed, "");
  const auto& all = made.made.requests;
  EXPECT_THAT(all[0].hash_ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(all[1].hash_ids, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(all[2].hash_ids, ElementsAre(6, 7, 8)) << "the same blocks behind others are others";
  EXPECT_EQ(all[1].timestamp_ms, 60'750u);
  EXPECT_EQ(all[1].session_id, "7");
  EXPECT_EQ(all[1].turn, 2u);
  EXPECT_EQ(measure(made.made).contradictions, 0u);
  auto joined = convert(lines, {.block_tokens = 32});
  EXPECT_THAT(joined.made.requests[1].hash_ids, ElementsAre(2, 4, 5));
  EXPECT_EQ(convert(lines, {.limit = 1}).made.requests.size(), 1u);
  EXPECT_THAT(refused(lines, {.block_tokens = 24}), HasSubstr("expected a multiple of 16"));
  EXPECT_THAT(
      refused(R"({"timestamp": 0, "input_length": 40, "output_length": 9, "hash_ids": [4, 5, 6, 7]})"),
      HasSubstr(":1: expected 3 hash_ids, one for 16 tokens, found 4"));
}

TEST_F(TraceConversion, ConversationsShareWhatWasSaid) {
  const std::string one = R"({"id": "a", "conversations": [{"from": "human", "value": ")" +
                          std::string(80, 'x') + R"("}, {"from": "gpt", "value": ")" + std::string(40, 'y') +
                          R"("}, {"from": "human", "value": "more"}, {"from": "gpt", "value": "no"}]})";
  const std::string silent =
      R"({"conversations": [{"from": "gpt", "value": "nobody asked"}, {"from": "human", "value": "?"}]})";
  const conversion_options with{.block_tokens = 16, .rate = 0.1, .turn_seconds = 4};
  auto made = convert("[" + one + ",\n " + silent + ", " + one + "]", with);
  EXPECT_EQ(made.from, trace_source::sharegpt);
  const auto& all = made.made.requests;
  // The second conversation is a question without an answer, behind an answer without a question.
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].input_length, 22u); // "human: ", 80 bytes and the end of the line
  EXPECT_EQ(all[0].output_length, 10u);
  EXPECT_EQ(all[1].timestamp_ms, 4'000u);
  EXPECT_EQ(all[2].timestamp_ms, 20'000u);
  EXPECT_EQ(all[1].hash_ids[0], all[0].hash_ids[0]);
  EXPECT_NE(all[1].hash_ids[1], all[0].hash_ids[1]) << "that block has the answer as well now";
  EXPECT_EQ(all[2].hash_ids, all[0].hash_ids) << "another conversation begins with the same words";
  EXPECT_THAT(made.assumed, HasSubstr("4 bytes count as a token, 0.1 conversations begin a second"));
  EXPECT_EQ(convert(one + "\n\n" + one + "\n", with).made.requests.size(), 4u) << "one a line";
  gzFile gzipped = gzopen(file.c_str(), "wb");
  std::string array = "[" + one + "]";
  gzwrite(gzipped, array.data(), static_cast<unsigned>(array.size()));
  gzclose(gzipped);
  auto read = convert_trace(file, with);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->made.requests.size(), 2u);
}

TEST_F(TraceConversion, OtherFilesAreRefusedWithWhatWasExpected) {
  EXPECT_THAT(refused(""), HasSubstr("found an empty file"));
  EXPECT_THAT(refused("\n  \n"), HasSubstr("found an empty file"));
  EXPECT_THAT(refused("a,b,c\n1,2,3\n"), HasSubstr(":1: expected a trace of Azure or BurstGPT"));
  EXPECT_THAT(refused("a,b,c\n", {.from = trace_source::azure}),
              HasSubstr("with the columns TIMESTAMP, ContextTokens and GeneratedTokens, found \"a,b,c\""));
  EXPECT_THAT(refused("TIMESTAMP,ContextTokens,GeneratedTokens\n"),
              HasSubstr("expected at least one request"));
  const std::string head = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  EXPECT_THAT(refused(head + "yesterday,1,2\n"), HasSubstr(":2: expected a time, found \"yesterday\""));
  EXPECT_THAT(refused(head + "2023-11-16 18:17:03.x,1,2\n"), HasSubstr(":2: expected a time"));
  EXPECT_THAT(refused(head + "2023-11-16 18:17:03,-1,2\n"), HasSubstr(":2: expected numbers of tokens"));
  EXPECT_THAT(refused(head + "2023-11-16 18:17:03,99999999999,2\n"),
              HasSubstr(":2: expected numbers of tokens"));
  EXPECT_THAT(refused(head + "2023-11-16 18:17:03,1\n"), HasSubstr(":2: expected 3 cells, found 2"));
  EXPECT_THAT(refused("[{\"conversations\": 7}]"),
              HasSubstr("expected ShareGPT's format, an array of objects with \"conversations\""));
  EXPECT_THAT(refused("[{\"a\": 7}]"), HasSubstr("found an object with \"a\" in it"));
  EXPECT_THAT(refused("[7]"), HasSubstr("found a JSON number in it"));
  EXPECT_THAT(refused("[{\"conversations\": ["), HasSubstr("found text that is no JSON at byte "));
  EXPECT_THAT(
      refused("{\"conversations\": []}\nnothing\n"),
      HasSubstr(":2: expected ShareGPT's format, an object with \"conversations\", each of {\"from\", "
                "\"value\"}, found \"nothing\""));
  EXPECT_THAT(
      refused("{\"hash_ids\": []}\n"),
      HasSubstr(":1: expected a line of a Qwen-Bailian trace, with timestamp, input_length, output_length "
                "and hash_ids, found an object with \"hash_ids\""));
  EXPECT_THAT(refused("{\"prompt\": 1, \"time\": 2}\n"),
              HasSubstr("found an object with \"prompt\", \"time\"; --from"));
  EXPECT_THAT(refused("{\"prompt\": 1}\n", {.from = trace_source::bailian}),
              HasSubstr("found an object with \"prompt\""));
  EXPECT_THAT(refused("{\"conversations\": []}\n", {.from = trace_source::azure}),
              HasSubstr("expected a CSV of Azure, with the columns"));
  EXPECT_THAT(refused("{\"conversations\": []}\n", {.from = trace_source::azure}),
              HasSubstr("found conversations in ShareGPT's format"));
  EXPECT_THAT(refused(R"({"timestamp": "a", "input_length": 40, "output_length": 9, "hash_ids": [1, 2, 3]})"),
              HasSubstr("all numbers, found an object with"));
}

TEST_F(TraceConversion, AFileInMooncakesFormatNeedsNone) {
  const std::string line =
      R"({"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 2353, 2354]})";
  for (const std::string& text : {refused(line), refused(line, {.from = trace_source::azure})})
    EXPECT_THAT(text, HasSubstr("a trace in Mooncake's format, which needs no conversion"));
}

TEST_F(TraceConversion, AFileThatIsNotThereIsNamed) {
  auto none = convert_trace(file + ".none", {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("cannot be opened"));
}

} // namespace
} // namespace terrace::cli
