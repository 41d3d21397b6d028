#include "cli/lookup_recorder.hpp"

#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

using ids = std::vector<uint64_t>;

client::recent_lookup lookup_of(const std::string& chunks, uint64_t tokens = 0) {
  client::recent_lookup one;
  one.space = 1;
  one.chunk_tokens = 16;
  for (char c : chunks) {
    digest chunk;
    chunk.bytes.fill(static_cast<uint8_t>(c));
    one.chunks.push_back(chunk);
  }
  one.prompt_tokens = tokens == 0 ? chunks.size() * 16 : tokens;
  return one;
}

TEST(LookupRecorder, RequestsShareIdsAsFarAsTheyShareChunks) {
  lookup_recorder recorder(0, 100);
  EXPECT_EQ(recorder.add(lookup_of("abc"), 0)->hash_ids, (ids{1, 2, 3}));
  EXPECT_EQ(recorder.add(lookup_of("abde"), 0)->hash_ids, (ids{1, 2, 4, 5}));
  auto again = recorder.add(lookup_of("abc"), 0);
  EXPECT_EQ(again->hash_ids, (ids{1, 2, 3}));
  EXPECT_EQ(again->input_length, 48u);
  EXPECT_EQ(recorder.chunk_tokens(), 16u);
}

TEST(LookupRecorder, ATraceLineOfEachRequestIsReadAgain) {
  lookup_recorder recorder(0, 100);
  for (uint64_t tokens : {16U, 17U, 31U}) {
    auto made = recorder.add(lookup_of("a", tokens), 0);
    auto line = format_trace_line(*made);
    auto read = parse_trace_line(line, {.block_tokens = 16});
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(read->input_length, tokens);
    EXPECT_EQ(read->full_blocks(), 1u);
  }
  EXPECT_NE(recorder.add(lookup_of("a", 20), 0)->hash_ids, recorder.add(lookup_of("a", 20), 0)->hash_ids)
      << "nothing shares a partial block";
}

TEST(LookupRecorder, TimesBeginWithTheFirstLookupAndNeverGoBack) {
  lookup_recorder recorder(0, 100);
  auto first = lookup_of("a"), second = lookup_of("b"), late = lookup_of("c");
  first.age = std::chrono::milliseconds(500);
  second.age = std::chrono::milliseconds(200);
  late.age = std::chrono::milliseconds(900);
  EXPECT_EQ(recorder.add(first, 10'000)->timestamp_ms, 0u);
  EXPECT_EQ(recorder.add(second, 10'000)->timestamp_ms, 300u);
  EXPECT_EQ(recorder.add(late, 10'000)->timestamp_ms, 300u);
}

TEST(LookupRecorder, APartBehindAKnownChunkHasItsBegin) {
  lookup_recorder recorder(0, 100);
  recorder.add(lookup_of("abc"), 0);
  auto rest = lookup_of("d", 48);
  rest.first_token = 32;
  EXPECT_FALSE(recorder.add(rest, 0)) << "its parent is not told";
  rest.parent = lookup_of("b").chunks[0];
  EXPECT_EQ(recorder.add(rest, 0)->hash_ids, (ids{1, 2, 4}));
  rest.parent = lookup_of("z").chunks[0];
  EXPECT_FALSE(recorder.add(rest, 0));
  EXPECT_EQ(recorder.unknown_begins(), 2u);
}

TEST(LookupRecorder, OneFileHasOneSpace) {
  lookup_recorder any(0, 100), second(2, 100);
  auto other = lookup_of("a");
  other.space = 2;
  EXPECT_TRUE(any.add(lookup_of("a"), 0));
  EXPECT_FALSE(any.add(other, 0));
  EXPECT_EQ(any.other_spaces(), 1u);
  EXPECT_FALSE(second.add(lookup_of("a"), 0));
  EXPECT_TRUE(second.add(other, 0));
}

TEST(LookupRecorder, ItsMemoryIsBounded) {
  lookup_recorder recorder(0, 3);
  EXPECT_TRUE(recorder.add(lookup_of("ab"), 0));
  EXPECT_FALSE(recorder.full());
  EXPECT_FALSE(recorder.add(lookup_of("cd"), 0));
  EXPECT_TRUE(recorder.full());
  EXPECT_TRUE(recorder.add(lookup_of("ab"), 0)) << "it has no new chunk";
}

} // namespace
} // namespace terrace::cli
