// How many tokens of a session are protected, committed and allocated.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace terrace {

/// Counted in tokens from the start of the prompt: protected <= committed <= allocated.
class session_lengths {
 public:
  /// Whole chunks, whose KV belongs to the index of the tiers.
  uint64_t protected_tokens() const { return protected_; }
  /// Valid tokens: those that the last finished turn left.
  uint64_t committed_tokens() const { return committed_; }
  /// Includes the tokens of the turn in progress.
  uint64_t allocated_tokens() const { return allocated_; }

  bool operator==(const session_lengths&) const = default;

  /// Tokens that belong to the session alone, in whole chunks.
  uint64_t held_tokens(uint32_t chunk_tokens) const {
    return (allocated_ + chunk_tokens - 1) / chunk_tokens * chunk_tokens - protected_;
  }

  /// Begins a turn that will end at `tokens`. An earlier turn that did not finish is forgotten.
  void begin(uint64_t tokens) {
    allocated_ = std::max(committed_, tokens);
    check();
  }
  /// Finishes a turn: the session now has `tokens`, which may be more or fewer than before.
  void commit(uint64_t tokens, uint32_t chunk_tokens) {
    assert(chunk_tokens > 0);
    protected_ = tokens / chunk_tokens * chunk_tokens;
    committed_ = allocated_ = tokens;
    check();
  }

 private:
  void check() const { assert(protected_ <= committed_ && committed_ <= allocated_); }

  uint64_t protected_ = 0, committed_ = 0, allocated_ = 0;
};

} // namespace terrace
