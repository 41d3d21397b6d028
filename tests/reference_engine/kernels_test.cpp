// The engine's arithmetic beside the same in double precision, one number after the other.
#include "bench/engine/kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace terrace::bench {

const kernels& plain_kernels();

namespace {

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> all(count);
  for (float& x : all)
    x = static_cast<float>(static_cast<double>(random()) / 2147483648.0 - 1);
  return all;
}

class Kernels : public ::testing::TestWithParam<bool> {
 protected:
  const kernels& with() const { return GetParam() ? best_kernels() : plain_kernels(); }
};

TEST_P(Kernels, MultiplyRowsByPanels) {
  constexpr size_t inputs = 40, outputs = 32;
  for (size_t count : {1, 2, 3, 4, 5, 11}) {
    auto rows = numbers(count * inputs, 1), weights = numbers(inputs * outputs, 2);
    std::vector<float> out(count * outputs);
    with().multiply(out.data(), rows.data(), weights.data(), count, inputs, outputs);
    for (size_t r = 0; r < count; ++r)
      for (size_t o = 0; o < outputs; ++o) {
        double sum = 0;
        for (size_t k = 0; k < inputs; ++k)
          sum += double{rows[r * inputs + k]} * weights[(o / 16 * inputs + k) * 16 + o % 16];
        EXPECT_NEAR(out[r * outputs + o], sum, 1e-5);
      }
  }
}

TEST_P(Kernels, AttendToTheTokensBeforeAndNoOthers) {
  constexpr size_t kv_heads = 2, tokens = 70, blocks = 5, heads = kv_heads * group_size;
  auto kv = numbers(blocks * layer_floats(kv_heads), 3), query = numbers(heads * head_size, 4);
  for (float& x : query)
    x *= 3;
  for (size_t position : {0, 15, 16, 50, 69}) {
    auto seen = kv;
    auto place = [&](size_t t) { return t / block_tokens * layer_floats(kv_heads); };
    auto key = [&](size_t t, size_t head, size_t d) {
      return place(t) + (head * head_size + d) * block_tokens + t % block_tokens;
    };
    auto value = [&](size_t t, size_t head, size_t d) {
      return place(t) + ((kv_heads + head) * block_tokens + t % block_tokens) * head_size + d;
    };
    for (size_t t = position + 1; t < blocks * block_tokens; ++t)
      for (size_t head = 0; head < kv_heads; ++head)
        for (size_t d = 0; d < head_size; ++d) // what nobody may look at
          seen[key(t, head, d)] = seen[value(t, head, d)] = std::numeric_limits<float>::quiet_NaN();
    std::vector<const float*> table;
    for (size_t b = 0; b <= position / block_tokens; ++b)
      table.push_back(seen.data() + b * layer_floats(kv_heads));
    std::vector<float> out(query.size()), scores(group_size * (tokens + block_tokens));
    with().attend({.query = query.data(),
                   .out = out.data(),
                   .blocks = table.data(),
                   .scores = scores.data(),
                   .kv_heads = kv_heads,
                   .position = position});
    for (size_t h = 0; h < heads; ++h) {
      std::vector<double> weights;
      double sum = 0;
      for (size_t t = 0; t <= position; ++t) {
        double score = 0;
        for (size_t d = 0; d < head_size; ++d)
          score += double{query[h * head_size + d]} * kv[key(t, h / group_size, d)];
        weights.push_back(std::exp(score / std::sqrt(double{head_size})));
        sum += weights.back();
      }
      for (size_t d = 0; d < head_size; ++d) {
        double expected = 0;
        for (size_t t = 0; t <= position; ++t)
          expected += weights[t] / sum * kv[value(t, h / group_size, d)];
        EXPECT_NEAR(out[h * head_size + d], expected, 1e-5) << position;
      }
    }
  }
}

TEST_P(Kernels, GateIsSiluTimesUp) {
  auto gate = numbers(64, 5), up = numbers(64, 6);
  for (size_t i = 0; i < gate.size(); ++i)
    gate[i] *= static_cast<float>(i);
  auto out = gate;
  with().gate(out.data(), up.data(), out.size());
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_NEAR(out[i], gate[i] / (1 + std::exp(-double{gate[i]})) * up[i], 1e-5) << gate[i];
}

INSTANTIATE_TEST_SUITE_P(Plain, Kernels, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Best, Kernels, ::testing::Values(true));

} // namespace
} // namespace terrace::bench
