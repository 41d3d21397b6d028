// The engine's cache of KV that was computed before: a daemon, or, as the limit, the engine's own memory.
#pragma once

#include "bench/engine/paged_kv.hpp"

#include <map>
#include <vector>

namespace terrace::bench {

struct restored {
  size_t tokens = 0;         ///< tokens whose KV is in the blocks now
  std::vector<float> logits; ///< logits of the last token, if the whole prompt was found with them
};

class prefix_cache {
 public:
  virtual ~prefix_cache() = default;
  /// Brings the cached KV of these tokens into the blocks of their table.
  virtual restored restore(std::span<const uint32_t> tokens, std::span<const uint32_t> table) = 0;
  /// Keeps a prompt: all of its KV, and its logits.
  virtual void keep(std::span<const uint32_t> tokens, std::span<const uint32_t> table,
                    std::span<const float> logits) = 0;
  /// Keeps the whole blocks of these tokens.
  virtual void keep_blocks(std::span<const uint32_t> tokens, std::span<const uint32_t> table) = 0;
};

/// A cache in the engine's process, without a bound: one memcpy of what is found, and nothing else.
class own_memory_cache : public prefix_cache {
 public:
  explicit own_memory_cache(paged_kv& kv) : kv_(kv) {}
  restored restore(std::span<const uint32_t> tokens, std::span<const uint32_t> table) override;
  void keep(std::span<const uint32_t> tokens, std::span<const uint32_t> table,
            std::span<const float> logits) override;
  void keep_blocks(std::span<const uint32_t> tokens, std::span<const uint32_t> table) override;

 private:
  struct entry {
    std::vector<std::vector<uint8_t>> blocks;
    std::vector<float> logits;
  };
  paged_kv& kv_;
  std::map<std::vector<uint32_t>, entry> entries_;
};

} // namespace terrace::bench
