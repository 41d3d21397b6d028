// With KV from the daemon the reference engine computes the same logits as without, bit for bit.
#include "bench/engine/experiment.hpp"
#include "bench/engine/host_kv.hpp"
#include "bench/engine/terrace_cache.hpp"
#include "bench/engine/transformer.hpp"
#include "engine_fixture.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/programs.hpp"

#include <gtest/gtest.h>

#include <set>

namespace terrace::bench {
namespace {

class ReferenceEngine : public engine_fixture {
 protected:
  language_model& model() override { return model_; }

  transformer model_{small_shape()};
};

class ReferenceEngineOnTheDaemon : public ReferenceEngine {
 protected:
  terrace_cache connect(const paged_kv& kv) { return {daemon_.socket(), "test", model_.shape(), kv}; }

  test::daemon_process daemon_{test::program("TERRACED"), {}};
};

TEST_F(ReferenceEngine, DividesAndBatchesWithoutChangingABit) {
  auto expected = run_alone(prompts_);
  EXPECT_EQ(expected.times.computed_tokens, tokens_of(prompts_));
  for (engine_options options : {engine_options{.running_max = 1, .prefill_tokens = 1024},
                                 engine_options{.running_max = 3, .prefill_tokens = 7},
                                 engine_options{.running_max = 32, .prefill_tokens = 50}}) {
    host_kv kv(model_.shape(), plenty);
    EXPECT_TRUE(same_bits(run(prompts_, nullptr, kv, options).logits, expected.logits))
        << options.prefill_tokens;
    EXPECT_EQ(kv.free_blocks(), plenty);
  }
}

TEST_F(ReferenceEngine, ComputesAgainAfterPreemptionsWithoutChangingABit) {
  auto expected = run_alone(prompts_);
  host_kv kv(model_.shape(), paged_kv::blocks_for(120));
  auto crowded = run(prompts_, nullptr, kv);
  EXPECT_GT(crowded.times.preemptions, 0U);
  EXPECT_GT(crowded.times.computed_tokens, tokens_of(prompts_));
  EXPECT_TRUE(same_bits(crowded.logits, expected.logits));
}

TEST_F(ReferenceEngine, OwnMemoryIsACacheToo) {
  auto expected = run_alone(prompts_);
  host_kv kv(model_.shape(), plenty);
  own_memory_cache cache(kv);
  run(prompts_, &cache, kv);
  auto again = run(prompts_, &cache, kv);
  EXPECT_TRUE(same_bits(again.logits, expected.logits));
  EXPECT_EQ(again.times.computed_tokens, 0U);
}

TEST_F(ReferenceEngineOnTheDaemon, RestoredPromptsGiveTheSameBits) {
  auto expected = run_alone(prompts_);
  {
    host_kv kv(model_.shape(), plenty);
    auto cache = connect(kv);
    EXPECT_TRUE(same_bits(run(prompts_, &cache, kv).logits, expected.logits));
    EXPECT_EQ(cache.tokens_restored(), 0U);
  }
  // Another engine, whose memory has never had that KV.
  host_kv kv(model_.shape(), plenty);
  auto cache = connect(kv);
  auto restored = run(prompts_, &cache, kv);
  EXPECT_TRUE(same_bits(restored.logits, expected.logits));
  // Those of 16 and 64 tokens have no partial block, so their last block is computed.
  EXPECT_EQ(restored.times.computed_tokens, 2 * block_tokens);
  EXPECT_EQ(cache.tokens_restored(), tokens_of(prompts_) - 2 * block_tokens);
}

TEST_F(ReferenceEngineOnTheDaemon, PartialHitsGiveTheSameBits) {
  std::vector<std::vector<uint32_t>> longer;
  for (uint32_t i = 0; i < 4; ++i) {
    longer.push_back(prompt_of(1, 70));
    auto end = prompt_of(20 + i, 30 + 5 * i);
    longer.back().insert(longer.back().end(), end.begin(), end.end());
  }
  auto expected = run_alone(longer);
  host_kv kv(model_.shape(), plenty);
  auto cache = connect(kv);
  run({prompt_of(1, 100)}, &cache, kv);
  auto found = run(longer, &cache, kv);
  EXPECT_TRUE(same_bits(found.logits, expected.logits));
  EXPECT_EQ(cache.tokens_restored(), 4 * 64U); // four whole blocks of the 70 tokens that they share
  EXPECT_EQ(found.times.computed_tokens, tokens_of(longer) - 4 * 64);
}

TEST_F(ReferenceEngineOnTheDaemon, RequestsWaitForAnEqualOneInPrefill) {
  std::vector<std::vector<uint32_t>> equal(5, prompt_of(6, 90));
  auto expected = run_alone(equal);
  host_kv kv(model_.shape(), plenty);
  auto cache = connect(kv);
  auto grouped = run(equal, &cache, kv, {.waits_for_equal = true});
  EXPECT_TRUE(same_bits(grouped.logits, expected.logits));
  EXPECT_EQ(grouped.times.computed_tokens, 90U);
}

TEST_F(ReferenceEngineOnTheDaemon, PreemptedRequestsComeBackWithTheSameBits) {
  auto expected = run_alone(prompts_);
  host_kv kv(model_.shape(), paged_kv::blocks_for(120));
  auto cache = connect(kv);
  auto crowded = run(prompts_, &cache, kv);
  EXPECT_GT(crowded.times.preemptions, 0U);
  EXPECT_GT(cache.tokens_restored(), 0U);
  EXPECT_TRUE(same_bits(crowded.logits, expected.logits));
}

TEST_F(ReferenceEngine, KvFromDiskGivesTheSameBits) {
  test::daemon_process daemon(
      test::program("TERRACED"),
      {.disk_bytes = 64 * test::mebibyte,
       .disk = "admission = \"always\"\ndemotion = \"off\"\n"}); // nothing is written before the move
  ASSERT_TRUE(daemon.await_log("joined"));
  std::vector<std::vector<uint32_t>> one{prompt_of(1, 100)};
  auto expected = run_alone(one);
  host_kv kv(model_.shape(), plenty);
  terrace_cache cache(daemon.socket(), "test", model_.shape(), kv);
  run(one, &cache, kv);
  cache.move_to(tier_kind::disk, one[0]);
  EXPECT_TRUE(same_bits(run(one, &cache, kv).logits, expected.logits));
  EXPECT_EQ(cache.bytes_from(tier_kind::disk), 6 * kv.block_bytes());
}

TEST_F(ReferenceEngineOnTheDaemon, DamagedKvGivesOtherLogits) {
  std::vector<std::vector<uint32_t>> one{prompt_of(1, 100)};
  auto expected = run_alone(one);
  host_kv kv(model_.shape(), plenty);
  auto cache = connect(kv);
  run(one, &cache, kv);
  const size_t half = layer_floats(model_.shape().kv_heads) / 2;
  // K and V of a token, in each layer.
  for (size_t number : {size_t{5}, half + 5, 2 * half + 5, 3 * half + 5}) {
    damaging_cache damaged(cache, kv, number);
    auto found = run(one, &damaged, kv);
    EXPECT_EQ(found.times.computed_tokens, 0U);
    // The first token is chosen from logits that were kept; those after it are computed.
    EXPECT_FALSE(std::ranges::equal(found.logits[{0, 1}], expected.logits[{0, 1}])) << number;
  }
  EXPECT_TRUE(same_bits(run(one, &cache, kv).logits, expected.logits));
}

TEST(Experiment, HasThePublishedCounts) {
  for (schedule which : {schedule::naive, schedule::offline, schedule::online}) {
    size_t prompt_tokens = 0, generated = 0;
    std::set<std::vector<uint32_t>> different;
    auto requests = requests_of(which, model_shape());
    for (auto& r : requests) {
      prompt_tokens += r.prompt.size();
      generated += r.generate;
      different.insert(r.prompt);
    }
    EXPECT_EQ(requests.size(), 64U);
    EXPECT_EQ(prompt_tokens, 54'784U);
    EXPECT_EQ(generated, 1'024U);
    EXPECT_EQ(different.size(), experiment_prompts);
  }
}

} // namespace
} // namespace terrace::bench
