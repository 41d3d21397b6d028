// The seeds of fuzz_verbs, and what it has found, played without a fuzzer.
#include "tests/fuzz/verb_seeds.hpp"
#include "tests/fuzz/verb_session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

using namespace terrace;
using namespace terrace::fuzz;

namespace {

session_report sum_of_seeds() {
  session_report sum;
  for (const verb_seed& seed : verb_seeds()) {
    SCOPED_TRACE(seed.name);
    auto report = play(seed.bytes);
    for (size_t verb = 0; verb < verb_client::verbs; ++verb) {
      sum.served[verb] += report.served[verb];
      sum.refused[verb] += report.refused[verb];
    }
    sum.ended += report.ended;
  }
  return sum;
}

} // namespace

TEST(VerbFuzzer, ItsSeedsReachEveryVerbInServiceAndRefused) {
  auto sum = sum_of_seeds();
  for (uint16_t number = 1; number <= protocol::last_request; ++number) {
    auto verb = static_cast<protocol::kind>(number);
    // There is no remote store here, so these two are refused.
    const bool needs_store = verb == protocol::kind::remote_probe || verb == protocol::kind::remote_sweep;
    EXPECT_GT((needs_store ? sum.refused : sum.served)[number], 0U)
        << to_string(verb) << " has no seed in tests/fuzz/verb_seeds.cpp that is served";
  }
  EXPECT_GT(sum.ended, 0U);
}

TEST(VerbFuzzer, ARunDependsOnItsInputAlone) {
  for (const verb_seed& seed : verb_seeds()) {
    auto once = play(seed.bytes), again = play(seed.bytes);
    EXPECT_EQ(once.trace, again.trace) << seed.name;
    EXPECT_EQ(once.served, again.served) << seed.name;
    EXPECT_EQ(once.refused, again.refused) << seed.name;
  }
}

TEST(VerbFuzzer, SeedsWithChangedBytesBreakNoPromise) {
  std::mt19937_64 random(22);
  for (const verb_seed& seed : verb_seeds())
    for (int round = 0; round < 10; ++round) {
      auto bytes = seed.bytes;
      for (int change = 0; change < 4; ++change)
        bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
      play(bytes);
    }
}

/// Inputs that once broke a promise lie in tests/fuzz/corpus/verbs.
TEST(VerbFuzzer, WhatItHasFoundBreaksNoPromiseAnyMore) {
  const char* folder = std::getenv("TERRACE_FUZZ_CORPUS");
  ASSERT_NE(folder, nullptr) << "expected the folder tests/fuzz/corpus/verbs in TERRACE_FUZZ_CORPUS";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    SCOPED_TRACE(entry.path().filename().string());
    play(bytes);
  }
}
