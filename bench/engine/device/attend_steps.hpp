// The steps of attention (see steps.hpp): they place KV, score tokens, mix values in parts, and combine the
// parts. The tokens that a row sees are cut into parts of 128 from the beginning of its request, so that
// parts can be computed in parallel; their boundaries depend on positions alone.
#pragma once

#include "bench/engine/device/step_data.hpp"

#include <math.h>

namespace terrace::bench {

/// Rotates queries and keys, and puts K and V where their block has them. An output is a pair of numbers,
/// half a head apart, of queries, keys or values.
struct place_step {
  static constexpr const char* name = "terrace_engine_place";
  static constexpr uint64_t half = head_size / 2;
  float* qkv; ///< [count][query heads, key heads, value heads]
  const device_row* rows;
  const float* cosine;
  const float* sine;
  device_kv_view kv;
  uint64_t count, kv_heads, positions;

  TERRACE_ENGINE_HOST_DEVICE uint64_t heads() const { return (group_size + 2) * kv_heads; }
  uint64_t outputs() const { return count * heads() * half; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const uint64_t k = i % half;
    const device_row row = rows[i / half / heads()];
    uint64_t head = i / half % heads();
    float* x = qkv + i / half * head_size + k;
    float a = x[0], b = x[half];
    if (head < (group_size + 1) * kv_heads) {
      const float c = cosine[row.position * half + k], s = sine[row.position * half + k];
      const float turned = a * c - b * s;
      b = b * c + a * s;
      a = turned;
      x[0] = a;
      x[half] = b;
    }
    if (head < group_size * kv_heads)
      return;
    head -= group_size * kv_heads;
    const uint64_t slot = row.position % block_tokens;
    float* to = kv.layer(row, row.position);
    if (head < kv_heads) {
      to += (head * head_size + k) * block_tokens + slot;
      to[0] = a;
      to[half * block_tokens] = b;
    } else {
      to += (head * block_tokens + slot) * head_size + k; // values lie behind all keys
      to[0] = a;
      to[half] = b;
    }
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

/// Tokens per part.
constexpr uint64_t part_tokens = 128;
/// Lower than all scores: e to the power of the difference is 0.
constexpr float no_score = -3e38F;

/// One number for each query head of a KV head.
struct alignas(group_size * sizeof(float)) group_floats {
  float of[group_size];
};
/// A query head's share of the values of a part. It is divided by `sum` in the end; `most` is the greatest
/// score in the part.
struct part_share {
  float most, sum;
};

/// Scores how well a token that a row sees fits the row's queries; an output is a token for a KV head of a
/// row. Neighbouring threads read neighbouring keys.
struct score_step {
  static constexpr const char* name = "terrace_engine_score";
  group_floats* scores; ///< [count][kv_heads][tokens]; not written for tokens that a row does not see
  const float* qkv;
  const device_row* rows;
  device_kv_view kv;
  uint64_t count, kv_heads, tokens;

  uint64_t outputs() const { return count * kv_heads * tokens; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    constexpr float scale = 0.17677670F; // 1 / sqrt(head_size)
    const uint64_t t = i % tokens, head = i / tokens % kv_heads, r = i / tokens / kv_heads;
    const device_row row = rows[r];
    if (t > row.position)
      return;
    const float* key = kv.layer(row, t) + head * head_size * block_tokens + t % block_tokens;
    const auto* query = reinterpret_cast<const four_floats*>(
        qkv + (r * (group_size + 2) * kv_heads + head * group_size) * head_size);
    float keys[head_size];
    for (uint64_t k = 0; k < head_size; ++k)
      keys[k] = key[k * block_tokens];
    group_floats found{};
    for (uint64_t g = 0; g < group_size; ++g) {
      for (uint64_t k = 0; k < head_size; k += 4) {
        const four_floats x = query[(g * head_size + k) / 4];
        for (uint64_t j = 0; j < 4; ++j)
          found.of[g] += x.of[j] * keys[k + j];
      }
      found.of[g] *= scale;
    }
    scores[i] = found;
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    visit(scores, count * kv_heads * tokens, true);
    visit(qkv, count * (group_size + 2) * kv_heads * head_size, false);
    visit(rows, count, false);
    visit(kv.blocks, kv.floats, false);
    visit(kv.tables, kv.table_entries, false);
  }
};

/// Mixes the values of a part for the query heads. An output is one number of a KV head's values, for a part
/// that a row sees. The softmax is updated with each block. Neighbouring threads read neighbouring values and
/// the same scores.
struct mix_step {
  static constexpr const char* name = "terrace_engine_mix";
  float* taken;       ///< [count][kv_heads][parts][group_size][head_size]
  part_share* shares; ///< [count][kv_heads][parts][group_size]
  const group_floats* scores;
  const device_row* rows;
  device_kv_view kv;
  uint64_t count, kv_heads, tokens; ///< in whole parts

  uint64_t outputs() const { return count * kv_heads * (tokens / part_tokens) * head_size; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const uint64_t k = i % head_size, place = i / head_size;
    const uint64_t parts = tokens / part_tokens, part = place % parts;
    const uint64_t head = place / parts % kv_heads, r = place / parts / kv_heads;
    const device_row row = rows[r];
    if (part * part_tokens > row.position)
      return;
    float own[group_size] = {}, sum[group_size] = {}, most[group_size];
    for (float& x : most)
      x = no_score;
    for (uint64_t b = 0; b < part_tokens && part * part_tokens + b <= row.position; b += block_tokens) {
      const uint64_t begin = part * part_tokens + b;
      const float* value = kv.layer(row, begin) + (kv_heads + head) * block_tokens * head_size + k;
      const group_floats* score = scores + place * part_tokens + b;
      group_floats fits[block_tokens];
      float values[block_tokens];
      // Tokens after the row's position do not count, whatever the block has there.
      for (uint64_t t = 0; t < block_tokens; ++t) {
        const bool seen = begin + t <= row.position;
        values[t] = seen ? value[t * head_size] : 0;
        for (uint64_t g = 0; g < group_size; ++g)
          fits[t].of[g] = seen ? score[t].of[g] : no_score;
      }
      for (uint64_t g = 0; g < group_size; ++g) {
        float now = most[g];
        for (const group_floats& fit : fits)
          now = fit.of[g] > now ? fit.of[g] : now;
        const float less = expf(most[g] - now);
        sum[g] *= less;
        own[g] *= less;
        most[g] = now;
        for (uint64_t t = 0; t < block_tokens; ++t) {
          const float share = expf(fits[t].of[g] - now);
          sum[g] += share;
          own[g] += share * values[t];
        }
      }
    }
    for (uint64_t g = 0; g < group_size; ++g) {
      taken[(place * group_size + g) * head_size + k] = own[g];
      if (k == 0)
        shares[place * group_size + g] = {most[g], sum[g]};
    }
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    const uint64_t places = count * kv_heads * (tokens / part_tokens);
    visit(taken, places * group_size * head_size, true);
    visit(shares, places * group_size, true);
    visit(scores, count * kv_heads * tokens, false);
    visit(rows, count, false);
    visit(kv.blocks, kv.floats, false);
    visit(kv.tables, kv.table_entries, false);
  }
};

/// Adds the parts up, in ascending order; an output is one number of a query head of a row.
struct combine_step {
  static constexpr const char* name = "terrace_engine_combine";
  float* out; ///< [count][query heads]
  const float* taken;
  const part_share* shares;
  const device_row* rows;
  uint64_t count, kv_heads, tokens;

  TERRACE_ENGINE_HOST_DEVICE uint64_t heads() const { return group_size * kv_heads; }
  uint64_t outputs() const { return count * heads() * head_size; }
  TERRACE_ENGINE_HOST_DEVICE void at(uint64_t i) const {
    const uint64_t k = i % head_size, g = i / head_size % group_size;
    const uint64_t first = i / head_size / group_size * (tokens / part_tokens);
    const uint64_t parts = rows[i / head_size / heads()].position / part_tokens + 1;
    const part_share* share = shares + first * group_size + g;
    float most = no_score;
    for (uint64_t p = 0; p < parts; ++p)
      most = share[p * group_size].most > most ? share[p * group_size].most : most;
    float sum = 0, all = 0;
    for (uint64_t p = 0; p < parts; ++p) {
      const float weight = expf(share[p * group_size].most - most);
      sum += weight * share[p * group_size].sum;
      all += weight * taken[((first + p) * group_size + g) * head_size + k];
    }
    out[i] = all / sum;
  }
  template <class Visit>
  void addresses(Visit&& visit) {
    const uint64_t places = count * kv_heads * (tokens / part_tokens);
    visit(out, count * heads() * head_size, true);
    visit(taken, places * group_size * head_size, false);
    visit(shares, places * group_size, false);
    visit(rows, count, false);
  }
};

} // namespace terrace::bench
