// A small transformer with random weights: RMSNorm, rotary positions, grouped-query attention over paged KV, SwiGLU.
// Small, but whole: wrong KV gives other logits.
#pragma once

#include "bench/engine/kernels.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace terrace::bench {

struct model_shape {
  size_t layers = 4;
  size_t kv_heads = 3;
  size_t inner = 528; ///< of the feed-forward part; a multiple of 16, like `vocabulary`
  size_t vocabulary = 4096;
  size_t positions = 1024; ///< of a request at most
  uint64_t seed = 1;

  size_t hidden() const { return kv_heads * group_size * head_size; }
  size_t kv_hidden() const { return kv_heads * head_size; }
  size_t block_floats() const { return layers * layer_floats(kv_heads); }
};

/// A token that is computed: it writes its KV into its block, and sees all tokens before it.
struct row {
  uint32_t token = 0;
  uint32_t position = 0;
  std::span<const uint32_t> blocks; ///< of its request, by position
  bool wants_logits = false;
};

/// Used by one thread.
class transformer {
 public:
  /// Weights depend on the shape alone.
  explicit transformer(const model_shape& shape);

  const model_shape& shape() const { return shape_; }

  /// `kv` is the memory of all blocks. The rows of a request are in ascending order. Returns logits of the rows that want
  /// them, back to back, valid until the next call.
  std::span<const float> compute(std::span<const row> rows, float* kv);

 private:
  struct layer {
    std::vector<float> attention_norm, qkv, output, inner_norm, gate, up, down;
  };
  void attend(const layer& with, size_t number, std::span<const row> rows, float* kv);
  void place(std::span<const row> rows, size_t number, float* kv);
  void feed_forward(const layer& with, size_t rows);

  model_shape shape_;
  const kernels& kernels_;
  std::vector<float> embedding_, head_, final_norm_;
  std::vector<layer> layers_;
  std::vector<float> cosine_, sine_; ///< by position, then half a head
  std::vector<float> hidden_, normed_, qkv_, mixed_, gate_, up_, scores_, last_, logits_;
  std::vector<const float*> blocks_;
};

} // namespace terrace::bench
