// The arithmetic of the reference engine on a GPU, written once: nvcc compiles it for the device (steps.cu), and the simulated
// driver of the tests for the host.
//
// A step is a launch. Each of its outputs is computed by one thread, in an order that depends on the output's own position
// alone (decision 065). Steps are passed by value; their pointers are the device's. `addresses` names what a step accesses:
// visit(pointer, number of elements, whether it is written).
#pragma once

#include "bench/engine/kernels.hpp"

#include <math.h>

#if defined(__CUDACC__)
#define TERRACE_ENGINE_HOST_DEVICE __host__ __device__
#else
#define TERRACE_ENGINE_HOST_DEVICE
#endif

namespace terrace::bench {

/// A token that is computed.
struct device_row {
  uint32_t token = 0;
  uint32_t position = 0;
  uint32_t table = 0; ///< where its request's blocks begin in the list of all
};

/// hidden[row] = embedding[its token]; an output is a number.
struct embed_step {
  static constexpr const char* name = "terrace_engine_embed";
  float* hidden;
  const float* embedding;
  const device_row* rows;
  uint64_t count, width, vocabulary;

  uint64_t outputs() const { return count * width; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    hidden[i] = embedding[rows[i / width].token * width + i % width];
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(hidden, count * width, true);
    visit(embedding, vocabulary * width, false);
    visit(rows, count, false);
  }
};

/// to[i] = from[its row] divided by its root mean square, times the weight; an output is a row.
struct normalize_step {
  static constexpr const char* name = "terrace_engine_normalize";
  float* to;
  const float* from;
  const float* weight;
  const uint32_t* chosen; ///< rows of `from`
  uint64_t count, width, from_count;

  uint64_t outputs() const { return count; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const float* x = from + chosen[i] * width;
    float sum = 0;
    for (uint64_t k = 0; k < width; ++k)
      sum += x[k] * x[k];
    const float scale = 1 / sqrtf(sum / static_cast<float>(width) + 1e-5F);
    for (uint64_t k = 0; k < width; ++k)
      to[i * width + k] = x[k] * scale * weight[k];
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(to, count * width, true);
    visit(from, from_count * width, false);
    visit(weight, width, false);
    visit(chosen, count, false);
  }
};

/// out[count][columns] = rows[count][inputs] * weights, in panels of 16 columns; an output is a number. Threads that are
/// neighbours read neighbouring weights.
struct multiply_step {
  static constexpr const char* name = "terrace_engine_multiply";
  float* out;
  const float* rows;
  const float* weights;
  uint64_t count, inputs, columns;

  uint64_t outputs() const { return count * columns; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const uint64_t column = i % columns;
    const float* row = rows + i / columns * inputs;
    const float* panel = weights + column / block_tokens * block_tokens * inputs + column % block_tokens;
    float sum = 0;
    for (uint64_t k = 0; k < inputs; ++k)
      sum += row[k] * panel[k * block_tokens];
    out[i] = sum;
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(out, count * columns, true);
    visit(rows, count * inputs, false);
    visit(weights, inputs * columns, false);
  }
};

/// The paged KV as a layer sees it.
struct device_kv_view {
  float* blocks;          ///< all layers of all blocks
  const uint32_t* tables; ///< the blocks of all requests of the step
  uint64_t floats, block_floats, layer_offset, table_entries;

  TERRACE_ENGINE_HOST_DEVICE float* layer(const device_row& row, uint64_t position) const {
    return blocks + tables[row.table + position / block_tokens] * block_floats + layer_offset;
  }
};

/// Rotates queries and keys, and puts K and V where their block has them; an output is a head of a row: those of queries, keys
/// and values.
struct place_step {
  static constexpr const char* name = "terrace_engine_place";
  float* qkv; ///< [count][query heads, key heads, value heads]
  const device_row* rows;
  const float* cosine;
  const float* sine;
  device_kv_view kv;
  uint64_t count, kv_heads, positions;

  TERRACE_ENGINE_HOST_DEVICE uint64_t heads() const { return (group_size + 2) * kv_heads; }
  uint64_t outputs() const { return count * heads(); }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    constexpr uint64_t half = head_size / 2;
    const device_row row = rows[i / heads()];
    const uint64_t slot = row.position % block_tokens;
    uint64_t head = i % heads();
    float* x = qkv + i * head_size;
    if (head < (group_size + 1) * kv_heads)
      for (uint64_t k = 0; k < half; ++k) {
        const float a = x[k], b = x[k + half];
        const float c = cosine[row.position * half + k], s = sine[row.position * half + k];
        x[k] = a * c - b * s;
        x[k + half] = b * c + a * s;
      }
    if (head < group_size * kv_heads)
      return;
    head -= group_size * kv_heads;
    float* to = kv.layer(row, row.position);
    if (head < kv_heads)
      for (uint64_t k = 0; k < head_size; ++k)
        to[(head * head_size + k) * block_tokens + slot] = x[k];
    else
      for (uint64_t k = 0; k < head_size; ++k)
        to[(head * block_tokens + slot) * head_size + k] = x[k]; // values are behind all keys
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(qkv, count * heads() * head_size, true);
    visit(rows, count, false);
    visit(cosine, positions * head_size / 2, false);
    visit(sine, positions * head_size / 2, false);
    visit(kv.blocks, kv.floats, true);
    visit(kv.tables, kv.table_entries, false);
  }
};

/// What each query head takes of the values that it sees; an output is a query head of a row. The softmax is kept up to date
/// token by token, so nothing but the result is written.
struct attend_step {
  static constexpr const char* name = "terrace_engine_attend";
  float* out; ///< [count][query heads]
  const float* qkv;
  const device_row* rows;
  device_kv_view kv;
  uint64_t count, kv_heads;

  TERRACE_ENGINE_HOST_DEVICE uint64_t heads() const { return group_size * kv_heads; }
  uint64_t outputs() const { return count * heads(); }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    constexpr float scale = 0.17677670F; // 1 / sqrt(head_size)
    const device_row row = rows[i / heads()];
    const uint64_t kv_head = i % heads() / group_size;
    const float* query = qkv + (i / heads() * (group_size + 2) * kv_heads + i % heads()) * head_size;
    float taken[head_size] = {};
    float most = 0, sum = 0;
    for (uint64_t t = 0; t <= row.position; ++t) {
      const float* block = kv.layer(row, t);
      const float* key = block + kv_head * head_size * block_tokens + t % block_tokens;
      const float* value =
          block + (kv_heads * block_tokens + kv_head * block_tokens + t % block_tokens) * head_size;
      float score = 0;
      for (uint64_t k = 0; k < head_size; ++k)
        score += query[k] * key[k * block_tokens];
      score *= scale;
      if (t == 0 || score > most) {
        const float less = t == 0 ? 0 : expf(most - score);
        sum *= less;
        for (float& x : taken)
          x *= less;
        most = score;
      }
      const float part = expf(score - most);
      sum += part;
      for (uint64_t k = 0; k < head_size; ++k)
        taken[k] += part * value[k];
    }
    for (uint64_t k = 0; k < head_size; ++k)
      out[i * head_size + k] = taken[k] / sum;
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(out, count * heads() * head_size, true);
    visit(qkv, count * (group_size + 2) * kv_heads * head_size, false);
    visit(rows, count, false);
    visit(kv.blocks, kv.floats, false);
    visit(kv.tables, kv.table_entries, false);
  }
};

/// gate[i] = silu(gate[i]) * up[i].
struct gate_step {
  static constexpr const char* name = "terrace_engine_gate";
  float* gate;
  const float* up;
  uint64_t count;

  uint64_t outputs() const { return count; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const float x = gate[i];
    gate[i] = x / (1 + expf(-x)) * up[i];
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(gate, count, true);
    visit(up, count, false);
  }
};

/// to[i] += from[i].
struct add_step {
  static constexpr const char* name = "terrace_engine_add";
  float* to;
  const float* from;
  uint64_t count;

  uint64_t outputs() const { return count; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const { to[i] += from[i]; }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(to, count, true);
    visit(from, count, false);
  }
};

#define TERRACE_ENGINE_STEPS(X) X(embed) X(normalize) X(multiply) X(place) X(attend) X(gate) X(add)

} // namespace terrace::bench
