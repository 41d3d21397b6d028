// terrace simulate predicts the hits of a daemon under terrace replay.
#include "daemon_under_test.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace terrace::e2e {
namespace {

/// Returns the first number after `"key":`, or -1.
double number_of(const std::string& json, const std::string& key) {
  size_t at = json.find("\"" + key + "\":");
  return at == std::string::npos ? -1 : std::strtod(json.c_str() + at + key.size() + 3, nullptr);
}

struct SimulateAndReplay : ::testing::TestWithParam<const char*> {
  /// Generates chats that branch, some shared beginnings, and answers that are still being written when
  /// others ask.
  std::string make_trace(const temporary_folder& in) {
    std::string trace = in / "trace.jsonl";
    auto made = run({program("TERRACE"), "trace", "generate", "--requests", "500", "--seed", "3", "--turns",
                     "4", "--think-seconds", "40", "--user-tokens", "3000", "--branch", "0.2", "--rate", "2",
                     "-o", trace});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return trace;
  }
  /// Generates agents with growing contexts of up to twice the tier, and short requests between them.
  std::string make_long_chains(const temporary_folder& in, uint64_t tier_chunks, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::vector<uint64_t>> agents(2);
    uint64_t next = 1;
    std::string lines;
    for (int i = 0; i < 60; ++i) {
      std::vector<uint64_t> brief;
      bool is_long = i % 5 == 0;
      auto& ids = is_long ? agents[random() % agents.size()] : brief;
      uint64_t wanted = !is_long      ? 1 + random() % (tier_chunks / 5)
                        : ids.empty() ? tier_chunks / 2 + random() % tier_chunks
                                      : ids.size() + random() % 4;
      while (ids.size() < std::min(wanted, 2 * tier_chunks))
        ids.push_back(next++);
      std::string text;
      for (uint64_t id : ids)
        text += (text.empty() ? "" : ",") + std::to_string(id);
      lines += "{\"timestamp\": " + std::to_string(1000 * i) +
               ", \"input_length\": " + std::to_string(ids.size() * 512) +
               ", \"output_length\": 20, \"hash_ids\": [" + text + "]}\n";
    }
    std::string trace = in / ("long-" + std::to_string(tier_chunks) + ".jsonl");
    write_file(trace, lines);
    return trace;
  }
  double simulated(const std::string& trace, const std::string& policy, uint64_t bytes) {
    auto told = run({program("TERRACE"), "simulate", trace, "--policies", policy, "--capacity",
                     std::to_string(bytes), "--token-seconds", "0.02", "--json"});
    EXPECT_EQ(told.exit_code, 0) << told.err;
    return number_of(told.out, "hit_tokens");
  }
  double replayed(const std::string& trace, const std::string& policy, uint64_t bytes) {
    daemon_under_test daemon({.host_bytes = bytes,
                              .host = "policy = \"" + policy + "\"\nallocator = \"free_list\"\n",
                              .policy = "clock = \"told\"\n"});
    auto told = run({program("TERRACE"), "replay", trace, "--token-seconds", "0.02", "--json", "--socket",
                     daemon.socket()});
    EXPECT_EQ(told.exit_code, 0) << told.err << told.out;
    return number_of(told.out, "hit_tokens");
  }
};

TEST_P(SimulateAndReplay, HitTheSameTokens) {
  temporary_folder folder;
  std::string trace = make_trace(folder);
  constexpr uint64_t object_bytes = 512 * 64 + 4096;
  for (uint64_t objects : {150, 600}) {
    SCOPED_TRACE(objects);
    double expected = simulated(trace, GetParam(), objects * object_bytes);
    EXPECT_GT(expected, 0);
    EXPECT_EQ(replayed(trace, GetParam(), objects * object_bytes), expected);
  }
}

TEST_P(SimulateAndReplay, HitTheSameTokensOfChainsLongerThanHostMemory) {
  temporary_folder folder;
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  constexpr uint64_t object_bytes = 512 * 64 + 4096;
  for (uint64_t objects : {40, 120}) {
    SCOPED_TRACE(objects);
    std::string trace = make_long_chains(folder, objects, seed);
    double expected = simulated(trace, GetParam(), objects * object_bytes);
    EXPECT_GT(expected, 0);
    EXPECT_EQ(replayed(trace, GetParam(), objects * object_bytes), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, SimulateAndReplay,
                         ::testing::Values("fifo", "lru", "arc", "s3fifo", "kmg"),
                         [](const auto& named) { return named.param; });

} // namespace
} // namespace terrace::e2e
