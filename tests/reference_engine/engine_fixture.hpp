// The reference engine with a small model, and what it computes.
#pragma once

#include "bench/engine/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

namespace terrace::bench {

constexpr size_t plenty = 200; // blocks

inline model_shape small_shape() {
  return {.layers = 2, .kv_heads = 1, .inner = 64, .vocabulary = 256, .positions = 256};
}

inline std::vector<uint32_t> prompt_of(uint32_t seed, size_t tokens) {
  std::vector<uint32_t> prompt(tokens);
  for (size_t i = 0; i < tokens; ++i)
    prompt[i] = static_cast<uint32_t>((seed * 7919 + i * i * 31 + i * seed) % 256);
  return prompt;
}

/// The bytes of all logits, by request and token.
using all_logits = std::map<std::pair<size_t, size_t>, std::vector<float>>;

inline bool same_bits(const all_logits& a, const all_logits& b) {
  return std::ranges::equal(a, b, [](auto& x, auto& y) {
    return x.first == y.first && x.second.size() == y.second.size() &&
           std::memcmp(x.second.data(), y.second.data(), x.second.size() * sizeof(float)) == 0;
  });
}

/// `model()` computes.
class engine_fixture : public ::testing::Test {
 protected:
  struct outcome {
    all_logits logits;
    engine_times times;
  };
  outcome run(const std::vector<std::vector<uint32_t>>& prompts, prefix_cache* cache, paged_kv& kv,
              const engine_options& options = {}) {
    outcome all;
    engine runs(model(), kv, cache, options, [&](size_t number, size_t token, std::span<const float> logits) {
      // After a preemption a token may be chosen once more: from the same logits.
      auto& of = all.logits[{number, token}];
      ASSERT_TRUE(of.empty() || std::ranges::equal(of, logits));
      of.assign(logits.begin(), logits.end());
    });
    std::vector<inference> requests;
    for (size_t i = 0; i < prompts.size(); ++i)
      requests.push_back({.number = i, .prompt = prompts[i], .generate = 20});
    all.times = runs.run(requests);
    EXPECT_EQ(all.logits.size(), prompts.size() * 20);
    return all;
  }
  outcome run_alone(const std::vector<std::vector<uint32_t>>& prompts) {
    auto kv = model().make_kv(plenty);
    return run(prompts, nullptr, *kv);
  }
  static size_t tokens_of(const std::vector<std::vector<uint32_t>>& prompts) {
    return std::transform_reduce(prompts.begin(), prompts.end(), size_t{0}, std::plus(),
                                 [](auto& p) { return p.size(); });
  }

  virtual language_model& model() = 0;
  std::vector<std::vector<uint32_t>> prompts_{prompt_of(1, 100), prompt_of(2, 33), prompt_of(3, 16),
                                              prompt_of(4, 1), prompt_of(5, 64)};
};

/// Hands on what another cache finds, with one number of it changed.
class damaging_cache : public prefix_cache {
 public:
  damaging_cache(prefix_cache& whole, paged_kv& kv, size_t number)
      : whole_(whole), kv_(kv), number_(number) {}
  restored restore(std::span<const uint32_t> tokens, std::span<const uint32_t> table) override {
    auto found = whole_.restore(tokens, table);
    std::vector<float> numbers(kv_.block_bytes() / sizeof(float));
    std::span bytes(reinterpret_cast<uint8_t*>(numbers.data()), kv_.block_bytes());
    kv_.read(table[0], bytes);
    numbers[number_] += 0.25F;
    kv_.write(table[0], bytes);
    return found;
  }
  void keep(std::span<const uint32_t> tokens, std::span<const uint32_t> table,
            std::span<const float> logits) override {
    whole_.keep(tokens, table, logits);
  }
  void keep_blocks(std::span<const uint32_t> tokens, std::span<const uint32_t> table) override {
    whole_.keep_blocks(tokens, table);
  }

 private:
  prefix_cache& whole_;
  paged_kv& kv_;
  size_t number_;
};

} // namespace terrace::bench
