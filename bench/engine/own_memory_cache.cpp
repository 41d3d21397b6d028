#include "bench/engine/prefix_cache.hpp"

#include <algorithm>

namespace terrace::bench {

restored own_memory_cache::restore(std::span<const uint32_t> tokens, std::span<const uint32_t> table) {
  // The entry with the longest common beginning is one of the two neighbours of the place of the tokens.
  std::vector<uint32_t> key(tokens.begin(), tokens.end());
  auto next = entries_.lower_bound(key);
  auto common = [&](auto other) {
    return static_cast<size_t>(std::ranges::mismatch(tokens, other->first).in1 - tokens.begin());
  };
  auto best = next;
  if (next == entries_.end() || (next != entries_.begin() && common(std::prev(next)) > common(next)))
    best = next == entries_.begin() ? entries_.end() : std::prev(next);
  if (best == entries_.end())
    return {};
  const entry& found = best->second;
  restored result;
  if (best->first == key && !found.logits.empty())
    result = {tokens.size(), found.logits};
  else
    result.tokens = std::min(common(best), tokens.size() - 1) / block_tokens * block_tokens;
  for (size_t i = 0; i < paged_kv::blocks_for(result.tokens); ++i)
    kv_.write(table[i], found.blocks[i]);
  return result;
}

void own_memory_cache::keep(std::span<const uint32_t> tokens, std::span<const uint32_t> table,
                            std::span<const float> logits) {
  entry& made = entries_[{tokens.begin(), tokens.end()}];
  made = {.blocks = {}, .logits = {logits.begin(), logits.end()}};
  for (size_t i = 0; i < paged_kv::blocks_for(tokens.size()); ++i)
    kv_.read(table[i], made.blocks.emplace_back(kv_.block_bytes()));
}

void own_memory_cache::keep_blocks(std::span<const uint32_t> tokens, std::span<const uint32_t> table) {
  keep(tokens.first(tokens.size() / block_tokens * block_tokens), table, {});
}

} // namespace terrace::bench
