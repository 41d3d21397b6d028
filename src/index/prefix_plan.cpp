#include "index/prefix_plan.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

namespace {

bool slower(tier_kind a, tier_kind b) { return static_cast<uint8_t>(a) > static_cast<uint8_t>(b); }

/// For 64 objects, of which a tier has those in `word`. Most words are full.
void merge_word(tier_kind* fastest, uint64_t word, tier_kind tier) {
  if (word == ~uint64_t{0}) {
    for (size_t i = 0; i < 64; ++i)
      fastest[i] = slower(fastest[i], tier) ? tier : fastest[i];
    return;
  }
  for (; word != 0; word &= word - 1) {
    tier_kind& one = fastest[std::countr_zero(word)];
    one = slower(one, tier) ? tier : one;
  }
}

std::vector<tier_kind> fastest_tiers(size_t objects, const std::vector<tier_answer>& answers) {
  std::vector<tier_kind> fastest(objects, tier_kind::none); // has the largest number of all tiers
  for (auto& answer : answers) {
    assert(answer.present.size() == objects);
    for (size_t i = 0; i < answer.present.words().size(); ++i)
      merge_word(&fastest[i * 64], answer.present.words()[i], answer.tier);
  }
  return fastest;
}

/// Per pool and number of chunks n: how many consecutive chunks, ending with the n-th, have all their ranks.
class run_lengths {
 public:
  run_lengths(const chunk_layout& layout, uint32_t chunks, const std::vector<tier_kind>& fastest)
      : stride_(chunks + 1), runs_(layout.pools() * stride_) {
    for (size_t pool = 0; pool < layout.pools(); ++pool)
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        auto first = fastest.begin() + static_cast<ptrdiff_t>(size_t{chunk} * layout.objects_per_chunk() +
                                                              layout.first_object(pool));
        bool whole =
            std::find(first, first + layout.ranks(pool), tier_kind::none) == first + layout.ranks(pool);
        runs_[pool * stride_ + chunk + 1] = whole ? runs_[pool * stride_ + chunk] + 1 : 0;
      }
  }
  uint32_t at(size_t pool, uint32_t length) const { return runs_[pool * stride_ + length]; }

 private:
  size_t stride_;
  std::vector<uint32_t> runs_;
};

/// The longest prefix of at most `limit` chunks at which every pool's rule holds.
uint32_t longest(const space_spec& spec, const run_lengths& runs, uint32_t limit) {
  for (uint32_t length = limit; length > 0; --length) {
    bool holds = true;
    for (size_t pool = 0; pool < spec.pools.size() && holds; ++pool) {
      bool all = spec.pools[pool].rule == hit_rule::all_chunks;
      holds = runs.at(pool, length) >= (all ? length : std::min(length, spec.pools[pool].trailing));
    }
    if (holds)
      return length;
  }
  return 0;
}

void find_tiers(const space_spec& spec, const chunk_layout& layout, prefix_plan& plan) {
  plan.chunk_tiers.assign(plan.found_chunks, tier_kind::none);
  for (uint32_t chunk = 0; chunk < plan.found_chunks; ++chunk) {
    bool any = false;
    tier_kind slowest{};
    for (size_t pool = 0; pool < layout.pools(); ++pool) {
      if (!needs(spec.pools[pool], plan.found_chunks, chunk))
        continue;
      size_t object = size_t{chunk} * layout.objects_per_chunk() + layout.first_object(pool);
      for (uint32_t rank = 0; rank < layout.ranks(pool); ++rank, ++object)
        if (!std::exchange(any, true) || slower(plan.object_tiers[object], slowest))
          slowest = plan.object_tiers[object];
    }
    if (any)
      plan.chunk_tiers[chunk] = slowest;
  }
}

std::optional<prefix_object> first_missing(const chunk_layout& layout, const prefix_plan& plan) {
  auto behind = plan.object_tiers.begin() +
                static_cast<ptrdiff_t>(size_t{plan.found_chunks} * layout.objects_per_chunk());
  auto absent = std::find(behind, plan.object_tiers.end(), tier_kind::none);
  if (absent == plan.object_tiers.end())
    return std::nullopt;
  auto number = static_cast<size_t>(absent - plan.object_tiers.begin());
  auto object = static_cast<uint32_t>(number % layout.objects_per_chunk());
  size_t pool = layout.pool_of(object);
  return prefix_object{static_cast<uint32_t>(number / layout.objects_per_chunk()),
                       static_cast<uint16_t>(pool),
                       static_cast<uint16_t>(object - layout.first_object(pool))};
}

} // namespace

bool needs(const pool_spec& pool, uint32_t length, uint32_t chunk) {
  if (chunk >= length)
    return false;
  return pool.rule == hit_rule::all_chunks || length - chunk <= pool.trailing;
}

std::array<uint64_t, 4> chunks_by_tier(const prefix_plan& plan) {
  std::array<uint64_t, 4> chunks{};
  for (auto begin = plan.chunk_tiers.begin(); begin != plan.chunk_tiers.end();) { // run by run: there are few
    auto end = std::find_if(begin, plan.chunk_tiers.end(),
                            [tier = *begin](tier_kind other) { return other != tier; });
    if (*begin != tier_kind::none)
      chunks[static_cast<size_t>(*begin)] += static_cast<uint64_t>(end - begin);
    begin = end;
  }
  return chunks;
}

prefix_plan make_prefix_plan(const space_spec& spec, const plan_request& request,
                             const std::vector<tier_answer>& answers) {
  chunk_layout layout(spec);
  prefix_plan plan;
  plan.requested_chunks = request.chunks;
  plan.first_token = request.first_token;
  plan.object_tiers = fastest_tiers(size_t{request.chunks} * layout.objects_per_chunk(), answers);
  run_lengths runs(layout, request.chunks, plan.object_tiers);

  plan.found_chunks = longest(spec, runs, request.chunks);
  plan.found_tokens = uint64_t{plan.found_chunks} * spec.chunk_tokens;
  plan.usable_chunks = plan.found_chunks;
  plan.usable_tokens = plan.found_tokens;
  if (plan.found_chunks > 0 && request.first_token + plan.found_tokens >= request.prompt_tokens) {
    bool cut_by_token = std::all_of(spec.pools.begin(), spec.pools.end(),
                                    [](const pool_spec& pool) { return pool.rule == hit_rule::all_chunks; });
    if (cut_by_token) {
      plan.usable_tokens = plan.found_tokens - 1;
      plan.usable_chunks = plan.usable_tokens > 0 ? plan.found_chunks : 0; // chunks of one token
    } else {
      plan.usable_chunks = longest(spec, runs, plan.found_chunks - 1);
      plan.usable_tokens = uint64_t{plan.usable_chunks} * spec.chunk_tokens;
    }
  }
  plan.missing = first_missing(layout, plan);
  plan.object_tiers.resize(size_t{plan.found_chunks} * layout.objects_per_chunk());
  find_tiers(spec, layout, plan);
  return plan;
}

} // namespace terrace
