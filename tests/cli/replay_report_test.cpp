#include "cli/replay_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace replay_report_test {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

replay_summary example() {
  replay_summary s;
  s.counts.requests = 1200;
  s.counts.input_tokens = 10'000;
  s.counts.chunk_tokens = 8'192;
  s.counts.hit_tokens = {0, 4'000, 1'000, 0};
  s.counts.loaded_bytes = {0, 3ULL << 30, 1ULL << 30, 0};
  s.counts.load_ns = 2'000'000'000;
  for (uint64_t ns : {10'000, 20'000, 30'000})
    s.counts.lookup.add(ns);
  s.seconds = 4;
  s.object_bytes = 32'768;
  s.mode = "mapped";
  return s;
}

TEST(ReplayReport, TellsHitsBytesAndLatencies) {
  std::string text = format_summary(example());
  EXPECT_THAT(text, HasSubstr("1,200 in 4.00 s, 1 client\n"));
  EXPECT_THAT(text, HasSubstr("50.0 % of the input tokens"));
  EXPECT_THAT(text, HasSubstr("4.00 GiB, 2.15 GB/s while loading (mapped mode)"));
  EXPECT_THAT(text, ContainsRegex("host +4,000 +40.0 % +3.00 GiB"));
  EXPECT_THAT(text, ContainsRegex("lookup +3 +20.0 us +30.0 us +30.0 us +30.0 us"));
  EXPECT_THAT(text, ContainsRegex("wrong bytes +0\n"));
}

TEST(ReplayReport, TellsWaitsAndPrefetches) {
  replay_summary s = example();
  s.counts.wait[static_cast<size_t>(tier_kind::disk)].add(2'000'000);
  s.counts.wait[static_cast<size_t>(tier_kind::disk)].add(4'000'000);
  std::string text = format_summary(s);
  EXPECT_THAT(text, ContainsRegex("disk +2 +2.00 ms +4.00 ms +4.00 ms +6.00 ms"));
  EXPECT_THAT(text, Not(HasSubstr("prefetched")));
  s.counts.merge(prefetched{.requests = 3, .expected = 20, .delivered = 19, .failed = 1});
  EXPECT_THAT(format_summary(s), HasSubstr("19 of 20 chunks in 3 requests, 1 failed"));
  json j = to_json(s);
  EXPECT_EQ(j["wait_ns"]["disk"]["sum"], 6'000'000);
  EXPECT_EQ(j["prefetch"]["delivered_chunks"], 19);
}

TEST(ReplayReport, TellsWhatTheStoreGave) {
  replay_summary s = example();
  EXPECT_THAT(format_summary(s), Not(HasSubstr("brought")));
  s.counts.hit_chunks = 20;
  s.counts.brought_chunks = 12;
  EXPECT_THAT(format_summary(s), ContainsRegex("brought +12 of 20 chunks from the remote store"));
  EXPECT_EQ(to_json(s)["brought_chunks"], 12);
  replay_counts sum = s.counts;
  sum.merge(s.counts);
  EXPECT_EQ(sum.brought_chunks, 24U);
  EXPECT_EQ(sum.hit_chunks, 40U);
}

TEST(ReplayReport, TellsWhatWentWrong) {
  replay_summary s = example();
  s.counts.wrong_bytes = 5;
  s.counts.wrong_objects = 1;
  s.counts.first_wrong = "request 7, chunk 0";
  s.counts.note_error({errc::no_space, "all is leased"});
  s.counts.note_error({errc::no_space, "another text"});
  std::string text = format_summary(s);
  EXPECT_THAT(text, HasSubstr("5 in 1 object, first: request 7, chunk 0"));
  EXPECT_THAT(text, ContainsRegex("error no_space +2 times, first: all is leased"));
}

TEST(ReplayReport, JsonHasTheSameNumbers) {
  json j = to_json(example());
  EXPECT_EQ(j["hit_ratio"], 0.5);
  EXPECT_EQ(j["tiers"]["disk"]["hit_tokens"], 1'000);
  EXPECT_EQ(j["latency_ns"]["lookup"]["p50"], 20'000);
  EXPECT_EQ(j["wrong_bytes"], 0);
}

TEST(ReplayCounts, MergeAddsUp) {
  replay_counts a = example().counts, b = example().counts;
  b.note_error({errc::busy, "later"});
  b.late_ns_max = 9;
  b.lost = true;
  a.merge(b);
  EXPECT_EQ(a.requests, 2'400U);
  EXPECT_EQ(a.all_hit_tokens(), 10'000U);
  EXPECT_EQ(a.errors[errc::busy].first_text, "later");
  EXPECT_EQ(a.late_ns_max, 9U);
  EXPECT_EQ(a.lookup.summary().count, 6U);
  EXPECT_TRUE(a.lost);
}

TEST(ReplayCounts, OnlyAFullOrBusyCacheIsForgiven) {
  replay_counts c;
  c.note_error({errc::busy, ""});
  EXPECT_TRUE(c.sound());
  c.note_error({errc::bad_request, ""});
  EXPECT_FALSE(c.sound());
}

} // namespace replay_report_test
} // namespace terrace::cli
