// A shadow of live traffic and a simulation of the same requests have equal hits.
#include "cli/simulate/tier_cache.hpp"
#include "policy/shadow_cache.hpp"
#include "tests/support/seed.hpp"
#include "workloads.hpp"

#include <gtest/gtest.h>

#include <random>

namespace terrace::simulate {
namespace shadow_equality_test {

constexpr uint64_t object = 4096;

class Shadow : public ::testing::TestWithParam<std::string_view> {};

/// Generates conversations over a few prompts, with pauses.
workload conversations(uint64_t seed) {
  std::mt19937_64 random(seed);
  workload made(16);
  std::vector<std::vector<uint64_t>> chains;
  uint64_t at_ns = 0;
  for (int i = 0; i < 3'000; ++i) {
    if (chains.empty() || random() % 3 == 0)
      chains.push_back({random() % 5});
    auto& chain = chains[chains.size() - 1 - random() % std::min<size_t>(chains.size(), 40)];
    for (uint64_t n = random() % 6; n > 0; --n)
      chain.push_back(random());
    at_ns += random() % 2'000'000'000;
    made.add({.at_ns = at_ns, .output_tokens = static_cast<uint32_t>(random() % 500)}, chain);
  }
  return made;
}

TEST_P(Shadow, HitsWhatASimulationOfTheSameRequestsHits) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  workload w = conversations(seed);
  // In the smallest tier, chains are longer than the tier. Lots are those of the simulation's host tier.
  for (uint64_t chunks : {8, 80, 500}) {
    tier_cache simulated(w, {.policies = {std::string(GetParam())}, .object_bytes = object},
                         {.capacity_chunks = chunks,
                          .object_bytes = object,
                          .window_chunks = chunks / 8,
                          .batch_chunks = 10'000});
    auto shadow = std::move(*shadow_cache::make(GetParam(), chunks * object, host_tier));
    for (const request& r : w.requests()) {
      simulated.serve(r);
      std::vector<entry_info> chain;
      for (chunk c : w.chain(r))
        chain.push_back({{c + 1ULL, c + 1ULL}, chain.empty() ? entry_key{} : chain.back().key, object});
      policy_time now = r.facts.at_ns;
      shadow->end(shadow->begin(chain, {.space = 1}, now), {.output_tokens = r.facts.output_tokens}, now);
    }
    EXPECT_EQ(shadow->counts().asked, simulated.counts().accesses);
    EXPECT_EQ(shadow->counts().hits, simulated.counts().hits) << "of " << chunks << " chunks";
    EXPECT_EQ(shadow->counts().evicted, simulated.counts().evicted) << "of " << chunks << " chunks";
    EXPECT_GT(shadow->counts().hits, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Shadow, ::testing::ValuesIn(eviction_policy_names()),
                         [](const auto& which) { return std::string(which.param); });

} // namespace shadow_equality_test
} // namespace terrace::simulate
