// The engine's view of a model: its shape, memory for KV where it computes, and a step.
#pragma once

#include "bench/engine/kernels.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace terrace::bench {

class paged_kv;

struct model_shape {
  size_t layers = 4;
  size_t kv_heads = 3;
  size_t inner = 528; ///< width of the feed-forward part; a multiple of 16, like `vocabulary`
  size_t vocabulary = 4096;
  size_t positions = 1024; ///< most positions of a request
  uint64_t seed = 1;

  size_t hidden() const { return kv_heads * group_size * head_size; }
  size_t kv_hidden() const { return kv_heads * head_size; }
  size_t block_floats() const { return layers * layer_floats(kv_heads); }
};

/// A token to compute: it writes its KV into its block, and sees all tokens before it.
struct row {
  uint32_t token = 0;
  uint32_t position = 0;
  std::span<const uint32_t> blocks; ///< blocks of its request, by position
  bool wants_logits = false;
};

/// Used by one thread.
class language_model {
 public:
  virtual ~language_model() = default;

  virtual const model_shape& shape() const = 0;
  /// Allocates memory for the KV of that many blocks. The program ends if there is none.
  virtual std::unique_ptr<paged_kv> make_kv(size_t blocks) = 0;
  /// `kv` belongs to this model. The rows of a request are in ascending order. Returns logits of the rows
  /// that want them, without gaps, valid until the next call.
  virtual std::span<const float> compute(std::span<const row> rows, paged_kv& kv) = 0;
};

/// Random weights, equal with every standard library. Weights of products are panels of 16 outputs,
/// [inputs][16] each.
struct model_weights {
  struct layer {
    std::vector<float> attention_norm, qkv, output, inner_norm, gate, up, down;
  };

  explicit model_weights(const model_shape& shape);

  std::vector<float> embedding, head, final_norm;
  std::vector<layer> layers;
  std::vector<float> cosine, sine; ///< by position, then by half a head
};

} // namespace terrace::bench
