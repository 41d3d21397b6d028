// The same engine with its KV and its arithmetic on a GPU: the simulated driver's, or the machine's own with
// TERRACE_GPU_TESTS=real. The daemon copies between its tiers and the device.
#include "bench/engine/device/device_transformer.hpp"
#include "bench/engine/device/steps_image.hpp"
#include "bench/engine/paged_kv.hpp"
#include "bench/engine/terrace_cache.hpp"
#include "bench/engine/transformer.hpp"
#include "engine_fixture.hpp"
#include "tests/gpu/driver_fixture.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/programs.hpp"

#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace terrace::bench {
namespace {

using cuda::on_real_driver;

/// The simulated driver does not read it.
std::span<const std::byte> code() {
  static constexpr std::byte any{1};
  return steps_image().empty() && !on_real_driver() ? std::span(&any, 1) : steps_image();
}

/// Its processes of GPUs find the same driver.
test::daemon_options with_driver(test::daemon_options options = {}) {
  options.before_exec = test::find_driver;
  return options;
}

class DeviceEngine : public engine_fixture {
 protected:
  void SetUp() override {
    if (!on_real_driver() && test::sanitized("thread"))
      GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
    if (code().empty())
      GTEST_SKIP() << "built without NVIDIA's toolkit: there are no kernels";
    if (!on_real_driver())
      cuda::simulation().reset(1, 256 << 20, 1);
    auto driver = cuda::driver::open(cuda::driver_library());
    ASSERT_TRUE(driver) << driver.error().text;
    auto device = (*driver)->devices().value().front();
    auto context = cuda::context::retain(*driver, device.ordinal);
    ASSERT_TRUE(context) << context.error().text;
    context_ = *context;
    uuid_ = cuda::to_text(device.uuid);
    model_.emplace(context_, uuid_, code(), small_shape());
  }
  void TearDown() override {
    model_.reset();
    context_.reset();
    if (on_real_driver() || IsSkipped())
      return;
    EXPECT_EQ(cuda::simulation().broken_rules(), std::vector<std::string>());
    EXPECT_EQ(cuda::simulation().live(), 0U) << "something of the driver was not given back";
  }
  language_model& model() override { return *model_; }
  terrace_cache connect(const test::daemon_process& daemon, const paged_kv& kv) {
    return {daemon.socket(), "test", model().shape(), kv};
  }

  std::shared_ptr<const cuda::context> context_;
  std::string uuid_;
  std::optional<device_transformer> model_;
  /// Those that have more tokens than a part of attention, just one, and one more.
  std::vector<std::vector<uint32_t>> long_prompts_{prompt_of(6, 200), prompt_of(7, part_tokens),
                                                   prompt_of(8, part_tokens + 1)};
};

TEST_F(DeviceEngine, ComputesWhatAProcessorDoes) {
  prompts_.insert(prompts_.end(), long_prompts_.begin(), long_prompts_.end());
  auto computed = run_alone(prompts_);
  transformer processor(small_shape());
  auto kv = processor.make_kv(plenty);
  for (size_t i = 0; i < prompts_.size(); ++i) {
    std::vector<uint32_t> table;
    ASSERT_TRUE(kv->extend(table, prompts_[i].size()));
    std::vector<row> rows;
    for (size_t at = 0; at < prompts_[i].size(); ++at)
      rows.push_back({prompts_[i][at], static_cast<uint32_t>(at), table, at + 1 == prompts_[i].size()});
    auto expected = processor.compute(rows, *kv);
    auto& logits = computed.logits[{i, 0}];
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t token = 0; token < expected.size(); ++token)
      ASSERT_NEAR(logits[token], expected[token], 1e-4F) << "prompt " << i << ", token " << token;
    kv->release(table);
  }
}

TEST_F(DeviceEngine, DividesBatchesAndPreemptsWithoutChangingABit) {
  auto expected = run_alone(prompts_);
  for (engine_options options : {engine_options{.running_max = 1, .prefill_tokens = 1024},
                                 engine_options{.running_max = 3, .prefill_tokens = 7},
                                 engine_options{.running_max = 32, .prefill_tokens = 50}}) {
    auto kv = model().make_kv(plenty);
    EXPECT_TRUE(same_bits(run(prompts_, nullptr, *kv, options).logits, expected.logits))
        << options.prefill_tokens;
  }
  auto few = model().make_kv(paged_kv::blocks_for(120));
  auto crowded = run(prompts_, nullptr, *few);
  EXPECT_GT(crowded.times.preemptions, 0U);
  EXPECT_TRUE(same_bits(crowded.logits, expected.logits));
}

TEST_F(DeviceEngine, TakesTokensInPartsAndRowsInGroupsWithoutChangingABit) {
  auto expected = run_alone(long_prompts_);
  for (uint64_t scores_bytes_max : {0, 5000}) { // a row, and a few, at a time
    model_.emplace(context_, uuid_, code(), small_shape(), scores_bytes_max);
    for (size_t prefill_tokens : {7, 150, 1024}) {
      auto kv = model().make_kv(plenty);
      auto found = run(long_prompts_, nullptr, *kv, {.running_max = 3, .prefill_tokens = prefill_tokens});
      EXPECT_TRUE(same_bits(found.logits, expected.logits)) << scores_bytes_max << ", " << prefill_tokens;
    }
  }
}

TEST_F(DeviceEngine, RestoredPromptsGiveTheSameBits) {
  test::daemon_process daemon(test::program("TERRACED"), with_driver());
  auto expected = run_alone(prompts_);
  {
    auto kv = model().make_kv(plenty);
    auto cache = connect(daemon, *kv);
    EXPECT_TRUE(same_bits(run(prompts_, &cache, *kv).logits, expected.logits));
    EXPECT_EQ(cache.tokens_restored(), 0U);
  }
  // Other memory, which has never had that KV.
  auto kv = model().make_kv(plenty);
  auto cache = connect(daemon, *kv);
  auto restored = run(prompts_, &cache, *kv);
  EXPECT_TRUE(same_bits(restored.logits, expected.logits));
  EXPECT_EQ(restored.times.computed_tokens, 2 * block_tokens) << "the last block of prompts of whole blocks";
  EXPECT_EQ(cache.tokens_restored(), tokens_of(prompts_) - 2 * block_tokens);
}

TEST_F(DeviceEngine, PreemptedRequestsComeBackWithTheSameBits) {
  test::daemon_process daemon(test::program("TERRACED"), with_driver());
  auto expected = run_alone(prompts_);
  auto kv = model().make_kv(paged_kv::blocks_for(120));
  auto cache = connect(daemon, *kv);
  auto crowded = run(prompts_, &cache, *kv);
  EXPECT_GT(crowded.times.preemptions, 0U);
  EXPECT_GT(cache.tokens_restored(), 0U);
  EXPECT_TRUE(same_bits(crowded.logits, expected.logits));
}

TEST_F(DeviceEngine, KvFromDiskGivesTheSameBits) {
  test::daemon_process daemon(test::program("TERRACED"),
                              with_driver({.disk_bytes = 64 * test::mebibyte,
                                           .disk = "admission = \"always\"\ndemotion = \"off\"\n"}));
  ASSERT_TRUE(daemon.await_log("joined"));
  std::vector<std::vector<uint32_t>> one{prompt_of(1, 100)};
  auto expected = run_alone(one);
  auto kv = model().make_kv(plenty);
  auto cache = connect(daemon, *kv);
  run(one, &cache, *kv);
  cache.move_to(tier_kind::disk, one[0]);
  EXPECT_TRUE(same_bits(run(one, &cache, *kv).logits, expected.logits));
  EXPECT_EQ(cache.bytes_from(tier_kind::disk), 6 * kv->block_bytes());
}

TEST_F(DeviceEngine, DamagedKvGivesOtherLogits) {
  test::daemon_process daemon(test::program("TERRACED"), with_driver());
  std::vector<std::vector<uint32_t>> one{prompt_of(1, 100)};
  auto expected = run_alone(one);
  auto kv = model().make_kv(plenty);
  auto cache = connect(daemon, *kv);
  run(one, &cache, *kv);
  const size_t half = layer_floats(model().shape().kv_heads) / 2;
  for (size_t number :
       {size_t{5}, half + 5, 2 * half + 5, 3 * half + 5}) { // K and V of a token, in each layer
    damaging_cache damaged(cache, *kv, number);
    auto found = run(one, &damaged, *kv);
    EXPECT_FALSE(std::ranges::equal(found.logits[{0, 1}], expected.logits[{0, 1}])) << number;
  }
  EXPECT_TRUE(same_bits(run(one, &cache, *kv).logits, expected.logits));
}

} // namespace
} // namespace terrace::bench
