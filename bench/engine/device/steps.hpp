// The arithmetic of the reference engine on a GPU, written once: nvcc compiles it for the device (steps.cu), and the simulated
// driver of the tests for the host.
//
// A step is a launch. Each of its outputs is computed by one thread, in an order that depends on the output's own position
// alone (decision 065). Steps are passed by value; their pointers are the device's. `addresses` names what a step accesses:
// visit(pointer, number of elements, whether it is written).
#pragma once

#include "bench/engine/device/attend_steps.hpp"
#include "bench/engine/device/step_data.hpp"

#include <math.h>

namespace terrace::bench {

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

/// sums[row][part]: the sum of the squares of a row's numbers at part, part + 32, and so on; an output is a
/// sum.
struct square_step {
  static constexpr const char* name = "terrace_engine_square";
  static constexpr uint64_t parts = 32;
  float* sums;
  const float* from;
  const uint32_t* chosen; ///< chosen rows of `from`
  uint64_t count, width, from_count;

  uint64_t outputs() const { return count * parts; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const float* x = from + chosen[i / parts] * width;
    float sum = 0;
    for (uint64_t k = i % parts; k < width; k += parts)
      sum += x[k] * x[k];
    sums[i] = sum;
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(sums, count * parts, true);
    visit(from, from_count * width, false);
    visit(chosen, count, false);
  }
};

/// to[i] = from[its row] divided by its root mean square, times the weight; an output is a number.
struct normalize_step {
  static constexpr const char* name = "terrace_engine_normalize";
  float* to;
  const float* from;
  const float* weight;
  const float* squares;   ///< [count][square_step::parts]
  const uint32_t* chosen; ///< chosen rows of `from`
  uint64_t count, width, from_count;

  uint64_t outputs() const { return count * width; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const uint64_t row = i / width, k = i % width;
    const auto* squared = reinterpret_cast<const four_floats*>(squares + row * square_step::parts);
    float sum = 0;
    for (uint64_t p = 0; p < square_step::parts / 4; ++p)
      for (float x : squared[p].of)
        sum += x;
    const float scale = 1 / sqrtf(sum / static_cast<float>(width) + 1e-5F);
    to[i] = from[chosen[row] * width + k] * scale * weight[k];
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(to, count * width, true);
    visit(from, from_count * width, false);
    visit(weight, width, false);
    visit(squares, count * square_step::parts, false);
    visit(chosen, count, false);
  }
};

/// out[count][columns] = rows[count][inputs] * weights, in panels of 16 columns. An output is a column of
/// four rows, so that each weight is read once for them. 32 neighbouring threads have neighbouring columns,
/// and the next 32 have the same columns of the next rows. Weights are read in batches of up to 32, because
/// they take long to arrive.
struct multiply_step {
  static constexpr const char* name = "terrace_engine_multiply";
  static constexpr uint64_t tile_rows = 4, tile_columns = 32, tiles = 4, batch = 32;
  float* out;
  const float* rows;
  const float* weights;
  uint64_t count, inputs, columns;

  TERRACE_ENGINE_HOST_DEVICE uint64_t across() const { return (columns + tile_columns - 1) / tile_columns; }
  uint64_t outputs() const {
    constexpr uint64_t together = tile_rows * tiles;
    return (count + together - 1) / together * across() * tiles * tile_columns;
  }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const uint64_t tile = i / tile_columns % tiles, group = i / tile_columns / tiles;
    const uint64_t column = group % across() * tile_columns + i % tile_columns;
    const uint64_t first = (group / across() * tiles + tile) * tile_rows;
    if (column >= columns || first >= count)
      return;
    const float* panel = weights + column / block_tokens * block_tokens * inputs + column % block_tokens;
    const float* row[tile_rows];
    for (uint64_t r = 0; r < tile_rows; ++r) // beyond the end, the last row is computed again and not written
      row[r] = rows + (first + r < count ? first + r : count - 1) * inputs;
    float sums[tile_rows] = {};
    uint64_t k = 0;
    for (; k + batch <= inputs; k += batch)
      add<batch>(sums, row, panel, k);
    for (; k < inputs; k += block_tokens)
      add<block_tokens>(sums, row, panel, k);
    for (uint64_t r = 0; r < tile_rows && first + r < count; ++r)
      out[(first + r) * columns + column] = sums[r];
  }
  template <uint64_t size>
  TERRACE_ENGINE_HOST_DEVICE static void add(float (&sums)[tile_rows], const float* const (&row)[tile_rows],
                                             const float* panel, uint64_t begin) {
    float weight[size];
    for (uint64_t k = 0; k < size; ++k)
      weight[k] = panel[(begin + k) * block_tokens];
    for (uint64_t k = 0; k < size; k += 4)
      for (uint64_t r = 0; r < tile_rows; ++r) {
        const four_floats x = *reinterpret_cast<const four_floats*>(row[r] + begin + k);
        for (uint64_t j = 0; j < 4; ++j)
          sums[r] += x.of[j] * weight[k + j];
      }
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(out, count * columns, true);
    visit(rows, count * inputs, false);
    visit(weights, inputs * columns, false);
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

#define TERRACE_ENGINE_STEPS(X)                                                                              \
  X(embed) X(square) X(normalize) X(multiply) X(place) X(score) X(mix) X(combine) X(gate) X(add)

} // namespace terrace::bench
