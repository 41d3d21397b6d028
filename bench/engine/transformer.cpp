#include "bench/engine/transformer.hpp"

#include "bench/engine/host_kv.hpp"

#include <algorithm>
#include <cmath>

namespace terrace::bench {

namespace {

constexpr size_t half = head_size / 2;

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

transformer::transformer(const model_shape& shape)
    : shape_(shape), kernels_(best_kernels()), weights_(shape),
      scores_(group_size * (shape.positions + block_tokens)) {}

std::unique_ptr<paged_kv> transformer::make_kv(size_t blocks) {
  return std::make_unique<host_kv>(shape_, blocks);
}

std::span<const float> transformer::compute(std::span<const row> rows, paged_kv& memory) {
  auto* kv = reinterpret_cast<float*>(memory.address());
  const size_t hidden = shape_.hidden();
  hidden_.resize(rows.size() * hidden);
  normed_.resize(rows.size() * hidden);
  qkv_.resize(rows.size() * (hidden + 2 * shape_.kv_hidden()));
  mixed_.resize(rows.size() * hidden);
  gate_.resize(rows.size() * shape_.inner);
  up_.resize(rows.size() * shape_.inner);
  for (size_t r = 0; r < rows.size(); ++r)
    std::copy_n(weights_.embedding.data() + rows[r].token * hidden, hidden, hidden_.data() + r * hidden);
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    attend(weights_.layers[i], i, rows, kv);
    feed_forward(weights_.layers[i], rows.size());
  }
  last_.clear();
  for (size_t r = 0; r < rows.size(); ++r)
    if (rows[r].wants_logits) {
      last_.resize(last_.size() + hidden);
      normalize(last_.data() + last_.size() - hidden, hidden_.data() + r * hidden, weights_.final_norm);
    }
  logits_.resize(last_.size() / hidden * shape_.vocabulary);
  kernels_.multiply(logits_.data(), last_.data(), weights_.head.data(), last_.size() / hidden, hidden,
                    shape_.vocabulary);
  return logits_;
}

void transformer::attend(const model_weights::layer& with, size_t number, std::span<const row> rows,
                         float* kv) {
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
      rotate(query + at, weights_.cosine.data() + position * half, weights_.sine.data() + position * half);
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

void transformer::feed_forward(const model_weights::layer& with, size_t rows) {
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
