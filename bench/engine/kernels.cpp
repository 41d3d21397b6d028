// Compiled more than once, with other names and instruction sets (meson.build). It includes nothing with
// inline functions, because the linker could keep a copy that this processor cannot run.
#include "bench/engine/kernels.hpp"

namespace terrace::bench {

const kernels& TERRACE_KERNELS();

namespace {

#ifdef __AVX2__
constexpr size_t width = 8;
constexpr size_t tile_rows = 4;
#else
constexpr size_t width = 4;
constexpr size_t tile_rows = 2;
#endif
constexpr size_t pieces = block_tokens / width; // vectors in 16 floats

// May have any address in an array of floats.
using lanes = float __attribute__((vector_size(width * sizeof(float)), aligned(alignof(float)), may_alias));
using whole = int32_t __attribute__((vector_size(width * sizeof(float))));

inline lanes& at(float* p) { return *reinterpret_cast<lanes*>(p); }
inline const lanes& at(const float* p) { return *reinterpret_cast<const lanes*>(p); }

template <size_t rows>
void multiply_tile(float* out, const float* row, const float* panel, size_t inputs, size_t outputs) {
  lanes sums[rows][pieces] = {};
  for (size_t k = 0; k < inputs; ++k)
    for (size_t r = 0; r < rows; ++r)
      for (size_t p = 0; p < pieces; ++p)
        sums[r][p] += row[r * inputs + k] * at(panel + k * block_tokens + p * width);
  for (size_t r = 0; r < rows; ++r)
    for (size_t p = 0; p < pieces; ++p)
      at(out + r * outputs + p * width) = sums[r][p];
}

void multiply(float* out, const float* rows, const float* weights, size_t count, size_t inputs,
              size_t outputs) {
  for (size_t column = 0; column < outputs; column += block_tokens) {
    const float* panel = weights + column * inputs;
    size_t row = 0;
    for (; row + tile_rows <= count; row += tile_rows)
      multiply_tile<tile_rows>(out + row * outputs + column, rows + row * inputs, panel, inputs, outputs);
    for (; row < count; ++row)
      multiply_tile<1>(out + row * outputs + column, rows + row * inputs, panel, inputs, outputs);
  }
}

// e^x for x <= 0, to about the precision of a float. From -87 on, where e^x would be 0, it is 1e-38.
inline lanes exponential(lanes x) {
  constexpr float log2_e = 1.44269504F, ln_2_high = 0.693359375F, ln_2_low = -2.12194440e-4F;
  lanes least = {};
  least -= 87.0F;
  x = x < least ? least : x;
  whole n = __builtin_convertvector(x * log2_e - 0.5F, whole); // rounded to the nearest
  lanes shift = __builtin_convertvector(n, lanes);
  lanes r = x - shift * ln_2_high - shift * ln_2_low;
  lanes p = r * (1.0F / 720) + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r * r + r + 1.0F;
  return p * (lanes) ((n + 127) << 23);
}

void score(const attention& a, size_t head, size_t blocks) {
  constexpr float scale = 0.17677670F; // 1 / sqrt(head_size)
  const float* query = a.query + head * group_size * head_size;
  for (size_t b = 0; b < blocks; ++b) {
    const float* keys = a.blocks[b] + head * head_size * block_tokens;
    lanes sums[group_size][pieces] = {};
    for (size_t d = 0; d < head_size; ++d)
      for (size_t g = 0; g < group_size; ++g)
        for (size_t p = 0; p < pieces; ++p)
          sums[g][p] += query[g * head_size + d] * at(keys + d * block_tokens + p * width);
    for (size_t g = 0; g < group_size; ++g)
      for (size_t p = 0; p < pieces; ++p)
        at(a.scores + (g * blocks + b) * block_tokens + p * width) = sums[g][p] * scale;
  }
}

// Tokens after this token's position do not count, whatever the block has there.
float weigh(float* scores, size_t known, size_t all) {
  float most = scores[0];
  for (size_t t = 1; t < known; ++t)
    most = scores[t] > most ? scores[t] : most;
  for (size_t t = known; t < all; ++t)
    scores[t] = most - 1000;
  lanes sums[pieces] = {};
  for (size_t t = 0; t < all; t += block_tokens)
    for (size_t p = 0; p < pieces; ++p) {
      lanes& s = at(scores + t + p * width);
      s = exponential(s - most);
      sums[p] += s;
    }
  float sum = 0;
  for (size_t p = 0; p < pieces; ++p)
    for (size_t i = 0; i < width; ++i)
      sum += sums[p][i];
  return sum;
}

void attend(const attention& a) {
  constexpr size_t parts = head_size / width;
  const size_t known = a.position + 1;
  const size_t blocks = (known + block_tokens - 1) / block_tokens;
  const size_t all = blocks * block_tokens;
  for (size_t head = 0; head < a.kv_heads; ++head) {
    score(a, head, blocks);
    float sum[group_size];
    for (size_t g = 0; g < group_size; ++g)
      sum[g] = weigh(a.scores + g * all, known, all);
    lanes sums[group_size][parts] = {};
    for (size_t t = 0; t < known; ++t) {
      const float* values = a.blocks[t / block_tokens] +
                            (a.kv_heads * block_tokens + head * block_tokens + t % block_tokens) * head_size;
      for (size_t g = 0; g < group_size; ++g)
        for (size_t p = 0; p < parts; ++p)
          sums[g][p] += a.scores[g * all + t] * at(values + p * width);
    }
    float* out = a.out + head * group_size * head_size;
    for (size_t g = 0; g < group_size; ++g)
      for (size_t p = 0; p < parts; ++p)
        at(out + g * head_size + p * width) = sums[g][p] / sum[g];
  }
}

void gate_all(float* gate, const float* up, size_t count) {
  for (size_t i = 0; i < count; i += width) {
    lanes x = at(gate + i);
    lanes e = exponential(x < 0 ? x : -x);
    lanes sigmoid = (x < 0 ? e : 1 + (e - e)) / (1 + e);
    at(gate + i) = x * sigmoid * at(up + i);
  }
}

} // namespace

const kernels& TERRACE_KERNELS() {
  static constexpr kernels all{.multiply = multiply, .attend = attend, .gate = gate_all};
  return all;
}

} // namespace terrace::bench
