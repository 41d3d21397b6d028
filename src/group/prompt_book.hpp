// The prompts of a trust group whose last logits are kept, so that an identical prompt needs no prefill.
#pragma once

#include "base/error.hpp"
#include "group/saved_turn.hpp"
#include "group/tail_book.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace terrace {

struct prompt_bounds {
  size_t prompts_max = 256;          ///< of the trust group; 0: none are kept
  uint64_t bytes_max = 256ULL << 20; ///< of their logits
};

/// Does not change. `end.key` names the prompt: the digest of all its tokens. It is a leaf under its last chunk: it refers to
/// its chunks by their digests and holds none of them, so it never keeps anything from eviction.
struct prompt_entry {
  saved_turn end;
  digest last_chunk; ///< of its last whole chunk; zeros if there is none
  std::vector<uint8_t> logits;

  uint64_t bytes() const {
    return sizeof(prompt_entry) + logits.capacity() + end.cursors.capacity() * sizeof(uint64_t);
  }
};
using prompt_entry_ptr = std::shared_ptr<const prompt_entry>;

/// Over a bound the least recently used ones end. Not thread-safe; owned by one actor.
class prompt_book {
 public:
  explicit prompt_book(const prompt_bounds& most = {}) : most_(most) {}

  /// Instead of an entry for the same prompt. `tail`: to its tail, if it has one. Error: `no_space`, if it alone is over the
  /// bound; then nothing has changed.
  result<void> add(prompt_entry_ptr what, tail_reference tail);

  /// It is used now. Null: there is none.
  prompt_entry_ptr find(space_id in, const digest& key);

  /// Those of the space, or all (0) end. How many there were.
  size_t forget(space_id in);

  size_t size() const { return by_key_.size(); }
  uint64_t bytes() const { return bytes_; }
  uint64_t evicted() const { return evicted_; } ///< over a bound, since the start

  /// For a recount, the least recently used one first.
  std::vector<prompt_entry_ptr> list() const;

 private:
  struct kept {
    prompt_entry_ptr what;
    tail_reference tail;
  };
  using place = std::list<kept>::iterator;
  using name = std::pair<space_id, digest>;
  void end(place at);

  prompt_bounds most_;
  std::list<kept> line_; ///< the least recently used one first
  std::map<name, place> by_key_;
  uint64_t bytes_ = 0;
  uint64_t evicted_ = 0;
};

} // namespace terrace
