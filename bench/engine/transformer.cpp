#include "bench/engine/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace terrace::bench {

namespace {

constexpr size_t half = head_size / 2;

// The same numbers with every standard library: its distributions are not specified, its engines are.
std::vector<float> random_floats(std::mt19937& random, size_t count, double deviation) {
  std::vector<float> all(count);
  for (float& x : all)
    x = static_cast<float>((random() / 4294967296.0 - 0.5) * std::sqrt(12.0) * deviation);
  return all;
}

void normalize(float* to, const float* from, const std::vector<float>& weight) {
  float sum = 0;
  for (size_t i = 0; i < weight.size(); ++i)
    sum += from[i] * from[i];
  float scale = 1 / std::sqrt(sum / static_cast<float>(weight.size()) + 1e-5F);
  for (size_t i = 0; i < weight.size(); ++i)
    to[i] = from[i] * scale * weight[i];
}

void rotate(float* head, const float* cosine, const float* sine) {
  for (size_t i = 0; i < half; ++i) {
    float a = head[i], b = head[i + half];
    head[i] = a * cosine[i] - b * sine[i];
    head[i + half] = b * cosine[i] + a * sine[i];
  }
}

} // namespace

transformer::transformer(const model_shape& shape) : shape_(shape), kernels_(best_kernels()) {
  std::mt19937 random(static_cast<uint32_t>(shape.seed));
  const size_t hidden = shape.hidden();
  auto weights = [&](size_t inputs, size_t outputs) {
    return random_floats(random, inputs * outputs, 1.5 / std::sqrt(static_cast<double>(inputs)));
  };
  embedding_ = random_floats(random, shape.vocabulary * hidden, 1);
  layers_.resize(shape.layers);
  for (layer& l : layers_)
    l = {.attention_norm = std::vector<float>(hidden, 1),
         .qkv = weights(hidden, hidden + 2 * shape.kv_hidden()),
         .output = weights(hidden, hidden),
         .inner_norm = std::vector<float>(hidden, 1),
         .gate = weights(hidden, shape.inner),
         .up = weights(hidden, shape.inner),
         .down = weights(shape.inner, hidden)};
  final_norm_.assign(hidden, 1);
  head_ = weights(hidden, shape.vocabulary);
  for (size_t position = 0; position < shape.positions; ++position)
    for (size_t i = 0; i < half; ++i) {
      double angle = static_cast<double>(position) *
                     std::pow(10'000.0, -static_cast<double>(i) / static_cast<double>(half));
      cosine_.push_back(static_cast<float>(std::cos(angle)));
      sine_.push_back(static_cast<float>(std::sin(angle)));
    }
  scores_.resize(group_size * (shape.positions + block_tokens));
}

std::span<const float> transformer::compute(std::span<const row> rows, float* kv) {
  const size_t hidden = shape_.hidden();
  hidden_.resize(rows.size() * hidden);
  normed_.resize(rows.size() * hidden);
  qkv_.resize(rows.size() * (hidden + 2 * shape_.kv_hidden()));
  mixed_.resize(rows.size() * hidden);
  gate_.resize(rows.size() * shape_.inner);
  up_.resize(rows.size() * shape_.inner);
  for (size_t r = 0; r < rows.size(); ++r)
    std::copy_n(embedding_.data() + rows[r].token * hidden, hidden, hidden_.data() + r * hidden);
  for (size_t i = 0; i < layers_.size(); ++i) {
    attend(layers_[i], i, rows, kv);
    feed_forward(layers_[i], rows.size());
  }
  last_.clear();
  for (size_t r = 0; r < rows.size(); ++r)
    if (rows[r].wants_logits) {
      last_.resize(last_.size() + hidden);
      normalize(last_.data() + last_.size() - hidden, hidden_.data() + r * hidden, final_norm_);
    }
  logits_.resize(last_.size() / hidden * shape_.vocabulary);
  kernels_.multiply(logits_.data(), last_.data(), head_.data(), last_.size() / hidden, hidden,
                    shape_.vocabulary);
  return logits_;
}

void transformer::attend(const layer& with, size_t number, std::span<const row> rows, float* kv) {
  const size_t hidden = shape_.hidden(), wide = hidden + 2 * shape_.kv_hidden();
  for (size_t r = 0; r < rows.size(); ++r)
    normalize(normed_.data() + r * hidden, hidden_.data() + r * hidden, with.attention_norm);
  kernels_.multiply(qkv_.data(), normed_.data(), with.qkv.data(), rows.size(), hidden, wide);
  place(rows, number, kv);
  for (size_t r = 0; r < rows.size(); ++r) {
    blocks_.clear();
    for (uint32_t block : rows[r].blocks.first(rows[r].position / block_tokens + 1))
      blocks_.push_back(kv + block * shape_.block_floats() + number * layer_floats(shape_.kv_heads));
    kernels_.attend({.query = qkv_.data() + r * wide,
                     .out = normed_.data() + r * hidden,
                     .blocks = blocks_.data(),
                     .scores = scores_.data(),
                     .kv_heads = shape_.kv_heads,
                     .position = rows[r].position});
  }
  kernels_.multiply(mixed_.data(), normed_.data(), with.output.data(), rows.size(), hidden, hidden);
  for (size_t i = 0; i < mixed_.size(); ++i)
    hidden_[i] += mixed_[i];
}

// Rotates queries and keys, and puts K and V where their block has them.
void transformer::place(std::span<const row> rows, size_t number, float* kv) {
  const size_t hidden = shape_.hidden(), wide = hidden + 2 * shape_.kv_hidden();
  for (size_t r = 0; r < rows.size(); ++r) {
    const size_t position = rows[r].position, slot = position % block_tokens;
    float* query = qkv_.data() + r * wide;
    for (size_t at = 0; at < hidden + shape_.kv_hidden(); at += head_size)
      rotate(query + at, cosine_.data() + position * half, sine_.data() + position * half);
    const float *keys = query + hidden, *values = keys + shape_.kv_hidden();
    float* to = kv + rows[r].blocks[position / block_tokens] * shape_.block_floats() +
                number * layer_floats(shape_.kv_heads);
    for (size_t i = 0; i < shape_.kv_hidden(); ++i)
      to[i * block_tokens + slot] = keys[i];
    to += shape_.kv_hidden() * block_tokens;
    for (size_t head = 0; head < shape_.kv_heads; ++head)
      for (size_t i = 0; i < head_size; ++i)
        to[(head * block_tokens + slot) * head_size + i] = values[head * head_size + i];
  }
}

void transformer::feed_forward(const layer& with, size_t rows) {
  const size_t hidden = shape_.hidden();
  for (size_t r = 0; r < rows; ++r)
    normalize(normed_.data() + r * hidden, hidden_.data() + r * hidden, with.inner_norm);
  kernels_.multiply(gate_.data(), normed_.data(), with.gate.data(), rows, hidden, shape_.inner);
  kernels_.multiply(up_.data(), normed_.data(), with.up.data(), rows, hidden, shape_.inner);
  kernels_.gate(gate_.data(), up_.data(), gate_.size());
  kernels_.multiply(mixed_.data(), gate_.data(), with.down.data(), rows, shape_.inner, hidden);
  for (size_t i = 0; i < mixed_.size(); ++i)
    hidden_[i] += mixed_[i];
}

} // namespace terrace::bench
