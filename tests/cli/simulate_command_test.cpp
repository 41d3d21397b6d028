#include "captured_console.hpp"
#include "cli/app.hpp"
#include "policy/eviction_policy.hpp"
#include "temporary_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace terrace::cli {
namespace simulate_command_test {

using testing::HasSubstr;

struct ran {
  exit_code code;
  std::string out;
  std::string err;
};

ran simulate(std::vector<std::string> words) {
  captured_console to;
  words.insert(words.begin(), "simulate");
  exit_code code = run_app(words, to.get());
  return {code, to.out(), to.err()};
}

// Two conversations in turns, and a separate prompt: 7 distinct blocks, 4 of which are requested again.
constexpr const char* small_trace =
    R"({"timestamp": 0, "input_length": 1024, "output_length": 9, "hash_ids": [1, 2]}
{"timestamp": 1000, "input_length": 1030, "output_length": 9, "hash_ids": [5, 6, 7]}
{"timestamp": 2000, "input_length": 1536, "output_length": 9, "hash_ids": [1, 2, 3]}
{"timestamp": 3000, "input_length": 512, "output_length": 9, "hash_ids": [8]}
{"timestamp": 4000, "input_length": 1540, "output_length": 9, "hash_ids": [5, 6, 9, 10]}
)";
constexpr double small_trace_tokens = 1024 + 1030 + 1536 + 512 + 1540;

TEST(Simulate, PrintsEveryPolicyOverEveryCapacityAndTheBounds) {
  temporary_file trace(small_trace);
  ran r = simulate({trace.path(), "--capacity", "50%,100%"});
  ASSERT_EQ(r.code, exit_code::ok) << r.err;
  for (std::string_view policy : eviction_policy_names())
    EXPECT_THAT(r.out, HasSubstr("  " + std::string(policy) + " "));
  EXPECT_THAT(r.out, HasSubstr("  Belady "));
  EXPECT_THAT(r.out, HasSubstr("50 %"));
  // Share of the input in these 4 blocks, which room for everything gives.
  EXPECT_THAT(r.out, HasSubstr("36.3"));
}

TEST(Simulate, JsonHoldsTheFiguresAndTheRate) {
  temporary_file trace(small_trace);
  ran r = simulate({trace.path(), "--policies", "lru", "--capacity", "100%", "--json"});
  ASSERT_EQ(r.code, exit_code::ok) << r.err;
  auto told = nlohmann::json::parse(r.out);
  EXPECT_EQ(told["distinct_chunks"], 7);
  EXPECT_EQ(told["accesses"], 11);
  EXPECT_DOUBLE_EQ(told["infinite_cache_hit_ratio"], 4 * 512 / small_trace_tokens);
  auto policy = told["policies"][0];
  EXPECT_EQ(policy["policy"], "lru");
  EXPECT_GT(policy["accesses_per_second"], 0);
  EXPECT_DOUBLE_EQ(policy["cells"][0]["hit_ratio"], 4 * 512 / small_trace_tokens);
  EXPECT_EQ(policy["cells"][0]["chunks_stored"], 7);
  EXPECT_DOUBLE_EQ(told["capacities"][0]["belady_hit_ratio"], 4 * 512 / small_trace_tokens);
}

TEST(Simulate, SeveralTracesAreServedTogether) {
  temporary_file one(small_trace), other(small_trace);
  ran r = simulate({one.path(), other.path(), "--policies", "lru", "--capacity", "100%", "--json"});
  ASSERT_EQ(r.code, exit_code::ok) << r.err;
  auto told = nlohmann::json::parse(r.out);
  EXPECT_EQ(told["distinct_chunks"], 14);
  EXPECT_DOUBLE_EQ(told["policies"][0]["cells"][0]["hit_ratio"], 4 * 512 / small_trace_tokens);
}

TEST(Simulate, CapacitiesAreArenasOfObjectsWithTheirHeaderBlocks) {
  temporary_file trace(small_trace);
  // 512 tokens of 8 bytes fill one page, and the header block another: 24 KiB hold three such objects.
  ran r = simulate({trace.path(), "--bytes-per-token", "8", "--capacity", "24KiB,8MiB", "--json"});
  ASSERT_EQ(r.code, exit_code::ok) << r.err;
  auto told = nlohmann::json::parse(r.out);
  EXPECT_EQ(told["object_bytes"], 8192);
  EXPECT_EQ(told["capacities"][0]["chunks"], 3);
  EXPECT_EQ(told["capacities"][0]["bytes"], 24 << 10);
  EXPECT_EQ(told["capacities"][1]["chunks"], 1024);
}

TEST(Simulate, ThreadsChangeNothing) {
  temporary_file trace(small_trace);
  auto without_times = [](const std::string& text) {
    auto told = nlohmann::json::parse(text);
    for (auto& policy : told["policies"]) {
      policy.erase("accesses_per_second");
      for (auto& cell : policy["cells"])
        cell.erase("seconds");
    }
    return told;
  };
  EXPECT_EQ(without_times(simulate({trace.path(), "--capacity", "30%,60%", "--json"}).out),
            without_times(simulate({trace.path(), "--capacity", "60%,30%", "--json", "--jobs", "3"}).out));
}

TEST(Simulate, DrawsThePolicies) {
  temporary_file trace(small_trace);
  temporary_file plot;
  ran r = simulate({trace.path(), "--capacity", "20%,50%", "--plot", plot.path()});
  ASSERT_EQ(r.code, exit_code::ok) << r.err;
  std::string svg = plot.text();
  EXPECT_THAT(svg, HasSubstr("<svg "));
  EXPECT_THAT(svg, HasSubstr(">lru<"));
  EXPECT_THAT(svg, HasSubstr(">Belady<"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST(Simulate, ADiskServesWhatLeftHostMemory) {
  temporary_file trace(small_trace);
  ran r = simulate({trace.path(), "--policies", "lru", "--capacity", "45%", "--second-tier", "8x", "--json"});
  ASSERT_EQ(r.code, exit_code::ok) << r.err;
  auto told = nlohmann::json::parse(r.out);
  EXPECT_EQ(told["capacities"][0]["chunks"], 3);
  EXPECT_EQ(told["capacities"][0]["disk_chunks"], 24);
  auto cell = told["policies"][0]["cells"][0];
  EXPECT_DOUBLE_EQ(cell["hit_ratio"], 4 * 512 / small_trace_tokens);
  EXPECT_GT(cell["disk_hit_ratio"], 0);
  EXPECT_DOUBLE_EQ(cell["hit_ratio"],
                   cell["host_hit_ratio"].get<double>() + cell["disk_hit_ratio"].get<double>());
  EXPECT_EQ(cell["chunks_written_to_disk"], 7);
  ran table =
      simulate({trace.path(), "--capacity", "45%", "--second-tier", "8x", "--admission", "seen-twice"});
  EXPECT_THAT(table.out, HasSubstr("of these from host memory"));
  EXPECT_THAT(table.out, HasSubstr("chunks written to disk per chunk served from it"));
  EXPECT_THAT(table.out, HasSubstr("8 times host memory, policy of host memory, admission seen-twice"));
}

TEST(Simulate, SeedsThatChangeNothingAreNotRunAgain) {
  temporary_file trace(small_trace);
  ran r = simulate({trace.path(), "--policies", "lru", "--capacity", "50%", "--seeds", "5", "--json"});
  ASSERT_EQ(r.code, exit_code::ok) << r.err;
  auto cell = nlohmann::json::parse(r.out)["policies"][0]["cells"][0];
  EXPECT_EQ(cell["runs"], 1);
  EXPECT_EQ(cell["hit_ratio_min"], cell["hit_ratio_max"]);
}

TEST(Simulate, SaysWhatWasExpected) {
  temporary_file trace(small_trace);
  temporary_file short_prompts(R"({"timestamp": 0, "input_length": 9, "output_length": 9, "hash_ids": [1]})");
  auto expect_usage = [](const std::vector<std::string>& words, const std::string& text) {
    ran r = simulate(words);
    EXPECT_EQ(r.code, exit_code::usage);
    EXPECT_THAT(r.err, HasSubstr(text));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_EQ(r.out, "");
  };
  expect_usage({}, "TRACE is required");
  expect_usage({trace.path(), "--policies", "lru,best"}, "--policies: unknown eviction policy 'best'");
  expect_usage({trace.path(), "--capacity", "5"},
               "--capacity: expected room for at least one chunk of 36.0 KiB");
  expect_usage({trace.path(), "--capacity", "1%"}, "--capacity: expected room for at least one chunk");
  expect_usage({trace.path(), "--capacity", "120%"}, "--capacity: expected a share above 0 and up to 100%");
  expect_usage({trace.path(), "--capacity", "much"}, "such as 512MiB, found \"much\"");
  expect_usage({trace.path(), "--chunk-tokens", "300"}, "--chunk-tokens: expected a multiple of 512");
  expect_usage({trace.path(), "--segment", "4KiB"}, "--segment: expected room for a chunk");
  expect_usage({trace.path(), "--second-tier", "8"},
               "--second-tier: expected a multiple of host memory such as 8x");
  expect_usage({trace.path(), "--second-tier", "0x"}, "--second-tier: expected a multiple");
  expect_usage({trace.path(), "--second-tier", "8x", "--disk-policy", "best"},
               "--disk-policy: unknown eviction policy 'best'");
  expect_usage({trace.path(), "--second-tier", "8x", "--admission", "never"}, "--admission");
  expect_usage({trace.path(), "--admission", "seen-twice"}, "expected together with --second-tier");
  expect_usage({trace.path(), "--seeds", "0"}, "--seeds");
  expect_usage({short_prompts.path()}, "expected prompts of at least 512 tokens");
  expect_usage({"/does/not/exist"}, "/does/not/exist: expected a readable file");
}

TEST(Simulate, APlotThatCannotBeWrittenIsAFailure) {
  temporary_file trace(small_trace);
  ran r = simulate({trace.path(), "--capacity", "50%", "--plot", "/does/not/exist.svg"});
  EXPECT_EQ(r.code, exit_code::failed);
  EXPECT_THAT(r.err, HasSubstr("/does/not/exist.svg: cannot be written"));
}

} // namespace simulate_command_test
} // namespace terrace::cli
