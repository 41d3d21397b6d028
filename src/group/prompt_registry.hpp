// The prompts of a trust group whose last logits are kept, so that an identical prompt needs no prefill.
#pragma once

#include "base/error.hpp"
#include "group/session_id.hpp"
#include "group/tail_registry.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace terrace {

struct prompt_bounds {
  size_t prompts_max = 256;          ///< entries of the trust group; 0: no entries are kept
  uint64_t bytes_max = 256ULL << 20; ///< bytes of their logits
};

/// Immutable. `end.key` names the prompt: it is the digest of all its tokens. The entry is a leaf under its
/// last chunk: it refers to its chunks by their digests and holds none of them, so it never protects anything
/// from eviction.
struct prompt_entry {
  saved_turn end;
  digest last_chunk; ///< digest of the last whole chunk; zeros if there is none
  std::vector<uint8_t> logits;

  uint64_t bytes() const {
    return sizeof(prompt_entry) + logits.capacity() + end.cursors.capacity() * sizeof(uint64_t);
  }
};
using prompt_entry_ptr = std::shared_ptr<const prompt_entry>;

/// When a bound is exceeded, the least recently used entries end. Not thread-safe; owned by one actor.
class prompt_registry {
 public:
  explicit prompt_registry(const prompt_bounds& most = {}) : most_(most) {}

  /// Adds the entry and replaces the one for the same prompt. `tail`: a reference to its tail, if it has one.
  /// Error: `no_space` if the entry alone exceeds the bound; then nothing changes.
  result<void> add(prompt_entry_ptr prompt, tail_reference tail);

  /// Marks the entry as used now. Returns null if there is none.
  prompt_entry_ptr find(space_id space, const digest& key);

  /// Ends the entries of the space, or all entries if `in` is 0. Returns how many there were.
  size_t forget(space_id space);

  size_t size() const { return by_key_.size(); }
  uint64_t bytes() const { return bytes_; }
  uint64_t evicted() const { return evicted_; } ///< entries evicted by a bound since the start

  /// Lists the entries for a recount, least recently used first.
  std::vector<prompt_entry_ptr> list() const;

 private:
  struct kept {
    prompt_entry_ptr prompt;
    tail_reference tail;
  };
  using place = std::list<kept>::iterator;
  using name = std::pair<space_id, digest>;
  void end(place at);

  prompt_bounds most_;
  std::list<kept> line_; ///< least recently used first
  std::map<name, place> by_key_;
  uint64_t bytes_ = 0;
  uint64_t evicted_ = 0;
};

} // namespace terrace
