// The arithmetic of the transformer, in float32.
//
// The order in which a result is computed depends on its own position alone, not on what is computed beside
// it or where its KV lies. So a token's logits have the same bits however its prompt is divided into steps,
// batched with others, or resumed with restored KV.
//
// kernels.cpp is compiled once for every processor, and once more for those with AVX2 and FMA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::bench {

constexpr size_t block_tokens = 16; ///< tokens of a block of paged KV, and width of a panel of weights
constexpr size_t head_size = 32;
constexpr size_t group_size = 2; ///< query heads for each KV head

/// Floats of one layer of a block: for each KV head, K as [head_size][block_tokens]; then, for each, V as
/// [block_tokens][head_size].
constexpr size_t layer_floats(size_t kv_heads) { return 2 * kv_heads * head_size * block_tokens; }

struct attention {
  const float* query;         ///< query of one token: kv_heads * group_size * head_size numbers
  float* out;                 ///< output with as many numbers
  const float* const* blocks; ///< the layer in each block, up to the block of the token itself
  float* scores;              ///< scratch: group_size numbers for each token of the blocks
  size_t kv_heads;
  size_t position; ///< the token sees positions 0 to this one
};

struct kernels {
  /// out[count][outputs] = rows[count][inputs] * weights. Weights are panels of 16 outputs, [inputs][16] each.
  void (*multiply)(float* out, const float* rows, const float* weights, size_t count, size_t inputs,
                   size_t outputs);
  void (*attend)(const attention& what);
  /// gate[i] = silu(gate[i]) * up[i], for a multiple of 16 numbers.
  void (*gate)(float* gate, const float* up, size_t count);
};

/// Returns the fastest kernels that this processor can run.
const kernels& best_kernels();

} // namespace terrace::bench
