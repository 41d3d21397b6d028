#include "index/prefix_plan.hpp"

#include "base/tier_properties.hpp"
#include "index/prefix_resolver.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace terrace {

namespace {

bool slower(tier_kind a, tier_kind b) { return static_cast<uint8_t>(a) > static_cast<uint8_t>(b); }

/// Merges 64 objects: the tier has those in `word`. Most words are full.
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

} // namespace

bool needs(const pool_spec& pool, uint32_t length, uint32_t chunk) {
  if (chunk >= length)
    return false;
  return pool.rule == hit_rule::all_chunks || length - chunk <= pool.trailing;
}

std::array<uint64_t, tier_kinds> chunks_by_tier(const prefix_plan& plan) {
  std::array<uint64_t, tier_kinds> chunks{};
  // run by run, because there are few runs
  for (auto begin = plan.chunk_tiers.begin(); begin != plan.chunk_tiers.end();) {
    auto end = std::find_if(begin, plan.chunk_tiers.end(),
                            [tier = *begin](tier_kind other) { return other != tier; });
    if (*begin != nowhere)
      chunks[static_cast<size_t>(*begin)] += static_cast<uint64_t>(end - begin);
    begin = end;
  }
  return chunks;
}

prefix_planner::prefix_planner(const space_spec& spec, const plan_request& request,
                               std::vector<tier_answer> answers, uint32_t chunks_at_most)
    : spec_(&spec), layout_(spec), request_(request), chunks_(std::min(request.chunks, chunks_at_most)),
      answers_(std::move(answers)) {
  for (size_t pool = 0; pool < layout_.pools(); ++pool)
    (spec.pools[pool].rule == hit_rule::all_chunks ? all_pools_ : trailing_pools_).push_back(pool);
  work_ = plan_all();
}

void prefix_planner::cut(uint32_t chunks) {
  assert(chunks <= plan_.found_chunks);
  chunks_ = chunks;
  chain_ = std::min(chain_, chunks);
  work_ = plan_rest();
}

steps prefix_planner::plan_all() {
  size_t per_chunk = layout_.objects_per_chunk();
  plan_.object_tiers.reserve((chunks_ * per_chunk + 63) / 64 * 64);
  runs_.reserve(trailing_pools_.size() * (size_t{chunks_} + 1));
  runs_.resize(trailing_pools_.size());
  auto some = static_cast<uint32_t>(step_objects / per_chunk + 1);
  // If all chunks of a pool are needed, the first one that is missing ends the search.
  for (uint32_t chunk = 0; chunk < chunks_ && chunk == (all_pools_.empty() ? chunk : chain_);) {
    uint32_t end = chunk + std::min(some, chunks_ - chunk);
    merge_up_to(end * per_chunk);
    if (trailing_pools_.empty())
      lengthen_chain(chunk, end);
    else
      for (uint32_t each = chunk; each < end; ++each)
        add_runs(each);
    chunk = end;
    if (end != chunks_)
      co_yield {};
  }
  if (all_pools_.empty())
    chain_ = chunks_;
  steps rest = plan_rest();
  while (rest.next())
    co_yield {};
}

steps prefix_planner::plan_rest() {
  plan_.requested_chunks = request_.chunks;
  plan_.first_token = request_.first_token;
  uint32_t length = chain_;
  steps search;
  if (!trailing_pools_.empty()) {
    search = find_longest(length);
    while (search.next())
      co_yield {};
  }
  plan_.found_chunks = plan_.usable_chunks = length;
  plan_.found_tokens = plan_.usable_tokens = tokens_of(plan_.found_chunks);
  plan_.tail_tokens = plan_.found_chunks == request_.chunks ? request_.tail_tokens : 0;
  if (plan_.found_chunks > 0 && !request_.logits &&
      request_.first_token + plan_.found_tokens >= request_.prompt_tokens) {
    if (trailing_pools_.empty()) {
      plan_.usable_tokens = plan_.found_tokens - 1;
      plan_.usable_chunks = plan_.usable_tokens > 0 ? plan_.found_chunks : 0; // chunks of one token
    } else {
      --length;
      search = find_longest(length);
      while (search.next())
        co_yield {};
      plan_.usable_chunks = length;
      plan_.usable_tokens = tokens_of(plan_.usable_chunks);
    }
  }
  find_missing();
  plan_.object_tiers.resize(size_t{plan_.found_chunks} * layout_.objects_per_chunk());
  if (layout_.objects_per_chunk() == 1 && trailing_pools_.empty()) {
    plan_.chunk_tiers = plan_.object_tiers;
    co_return;
  }
  plan_.chunk_tiers.clear();
  plan_.chunk_tiers.reserve(plan_.found_chunks);
  step_pace pace(step_objects);
  for (uint32_t chunk = 0; chunk < plan_.found_chunks; ++chunk) {
    plan_.chunk_tiers.push_back(slowest_of(chunk));
    if (pace.due(layout_.objects_per_chunk()) && chunk + 1 != plan_.found_chunks)
      co_yield {};
  }
}

/// Returns the tokens of the first `chunks` chunks.
uint64_t prefix_planner::tokens_of(uint32_t chunks) const {
  return tokens_of_chunks(chunks, request_.chunks, request_.tail_tokens, spec_->chunk_tokens);
}

void prefix_planner::merge_up_to(size_t objects) {
  size_t first = plan_.object_tiers.size(), end = (objects + 63) / 64 * 64; // whole words
  if (end <= first)
    return;
  plan_.object_tiers.resize(end, nowhere); // `none` is larger than every tier
  for (auto& answer : answers_) {
    auto words = answer.present.words();
    for (size_t word = first / 64; word < std::min(end / 64, words.size()); ++word)
      merge_word(&plan_.object_tiers[word * 64], words[word], answer.tier);
  }
}

/// True if all ranks of the pool have the chunk.
bool prefix_planner::whole(uint32_t chunk, size_t pool) const {
  auto first =
      plan_.object_tiers.begin() +
      static_cast<ptrdiff_t>(size_t{chunk} * layout_.objects_per_chunk() + layout_.first_object(pool));
  auto end = first + layout_.ranks(pool);
  return std::find(first, end, nowhere) == end;
}

/// Returns the first object from `first` to `end` that is in no tier; `end` if there is none.
size_t prefix_planner::first_absent(size_t first, size_t end) const {
  const tier_kind* tiers = plan_.object_tiers.data();
  const void* absent =
      first == end ? nullptr : std::memchr(tiers + first, static_cast<int>(nowhere), end - first);
  return absent == nullptr ? end : static_cast<size_t>(static_cast<const tier_kind*>(absent) - tiers);
}

/// Extends the chain by the chunks from `first`, where it ends now, to `end`, in a space where all objects are needed.
void prefix_planner::lengthen_chain(uint32_t first, uint32_t end) {
  size_t per_chunk = layout_.objects_per_chunk();
  chain_ = static_cast<uint32_t>(first_absent(first * per_chunk, end * per_chunk) / per_chunk);
}

void prefix_planner::add_runs(uint32_t chunk) {
  if (chain_ == chunk && std::all_of(all_pools_.begin(), all_pools_.end(),
                                     [this, chunk](size_t pool) { return whole(chunk, pool); }))
    ++chain_;
  for (size_t pool : trailing_pools_) {
    uint32_t before = runs_[runs_.size() - trailing_pools_.size()];
    runs_.push_back(whole(chunk, pool) ? before + 1 : 0);
  }
}

bool prefix_planner::rules_hold(uint32_t chunks) const {
  bool holds = true;
  for (size_t i = 0; i < trailing_pools_.size() && holds; ++i)
    holds = runs_[chunks * trailing_pools_.size() + i] >=
            std::min(chunks, spec_->pools[trailing_pools_[i]].trailing);
  return holds;
}

/// Shortens `length` to the longest prefix at which every pool's rule holds.
steps prefix_planner::find_longest(uint32_t& length) {
  step_pace pace(step_objects);
  for (; length > 0; --length) {
    if (rules_hold(length))
      co_return;
    if (pace.due(trailing_pools_.size()))
      co_yield {};
  }
}

void prefix_planner::find_missing() {
  plan_.missing.reset();
  size_t per_chunk = layout_.objects_per_chunk();
  size_t first = plan_.found_chunks * per_chunk;
  size_t end = std::min(chunks_ * per_chunk, plan_.object_tiers.size());
  size_t number = first_absent(first, end);
  if (number == end)
    return;
  auto object = static_cast<uint32_t>(number % per_chunk);
  size_t pool = layout_.pool_of(object);
  plan_.missing = {static_cast<uint32_t>(number / per_chunk), static_cast<uint16_t>(pool),
                   static_cast<uint16_t>(object - layout_.first_object(pool))};
}

tier_kind prefix_planner::slowest_of(uint32_t chunk) const {
  bool any = false;
  tier_kind slowest{};
  for (size_t pool = 0; pool < layout_.pools(); ++pool) {
    if (!needs(spec_->pools[pool], plan_.found_chunks, chunk))
      continue;
    size_t object = size_t{chunk} * layout_.objects_per_chunk() + layout_.first_object(pool);
    for (uint32_t rank = 0; rank < layout_.ranks(pool); ++rank, ++object)
      if (!std::exchange(any, true) || slower(plan_.object_tiers[object], slowest))
        slowest = plan_.object_tiers[object];
  }
  return any ? slowest : nowhere;
}

prefix_plan make_prefix_plan(const space_spec& spec, const plan_request& request,
                             std::vector<tier_answer> answers) {
  prefix_planner planner(spec, request, std::move(answers));
  while (planner.step())
    ;
  return planner.take();
}

std::vector<size_t> unusable_objects(const space_spec& spec, const rank_presence& ranks,
                                     const object_bitmap& present, uint32_t first_chunk) {
  std::vector<size_t> unusable;
  chunk_layout layout(spec);
  size_t per_chunk = layout.objects_per_chunk();
  for (size_t chunk = size_t{first_chunk} * per_chunk; chunk + per_chunk <= present.size();
       chunk += per_chunk)
    for (size_t pool = 0; pool < layout.pools(); ++pool) {
      bool given_up = false;
      std::vector<size_t> there;
      for (uint32_t rank = 0; rank < layout.ranks(pool); ++rank) {
        size_t object = chunk + layout.object_of(pool, rank);
        if (present.test(object))
          there.push_back(object);
        else
          given_up = given_up || (layout.ranks(pool) > 1 && ranks.has_left(rank));
      }
      if (given_up)
        unusable.insert(unusable.end(), there.begin(), there.end());
    }
  return unusable;
}

} // namespace terrace
