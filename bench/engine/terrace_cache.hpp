// The daemon as the engine's cache: a chunk is a block, and an object is copied to and from its place in the paged KV.
#pragma once

#include "bench/engine/prefix_cache.hpp"
#include "client/client.hpp"

namespace terrace::bench {

/// Ends the program if the daemon refuses a request: an engine would compute instead, but a benchmark or a
/// test would have nothing to show.
class terrace_cache : public prefix_cache {
 public:
  /// `name` makes a space of its own.
  terrace_cache(const std::string& socket, const std::string& name, const model_shape& shape,
                const paged_kv& kv);
  /// Afterwards the daemon no longer accesses the memory of `kv`.
  ~terrace_cache() override;

  restored restore(std::span<const uint32_t> tokens, std::span<const uint32_t> table) override;
  void keep(std::span<const uint32_t> tokens, std::span<const uint32_t> table,
            std::span<const float> logits) override;
  void keep_blocks(std::span<const uint32_t> tokens, std::span<const uint32_t> table) override;

  /// Moves the whole blocks of these tokens to disk alone, or brings them to a faster tier as well. Waits
  /// until that is done.
  void move_to(tier_kind tier, std::span<const uint32_t> tokens);
  /// Makes a faster tier forget them. Absent objects are ignored.
  void evict_from(tier_kind tier, std::span<const uint32_t> tokens);

  /// Number of tokens whose KV has come from the daemon so far.
  size_t tokens_restored() const { return tokens_restored_; }
  /// Bytes of the last prompt that came from this tier.
  uint64_t bytes_from(tier_kind tier) const {
    auto at = static_cast<size_t>(tier);
    return at < bytes_by_tier_.size() ? bytes_by_tier_[at] : 0;
  }

 private:
  void store(std::span<const uint32_t> tokens, std::span<const uint32_t> table);
  std::vector<client::run> runs_of(std::span<const uint32_t> table, size_t blocks) const;

  const paged_kv& kv_;
  client::connection daemon_;
  client::space space_;
  client::registered_region region_;
  size_t tokens_restored_ = 0;
  std::vector<uint64_t> bytes_by_tier_;
};

} // namespace terrace::bench
