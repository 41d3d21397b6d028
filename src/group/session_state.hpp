// The known prompt of a session, which a turn continues.
#pragma once

#include "base/digest.hpp"
#include "group/session_id.hpp"
#include "index/extra_keys.hpp"
#include "index/known_prefix.hpp"
#include "index/token_hasher.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

// The digests of a prompt's whole chunks, shared by all holders of a part of them.

/// An immutable value. Cutting or extending a chain copies at most one segment and the list of segments,
/// however long the chain is; the result shares all other segments with the original. A copy shares the list
/// as well. Different threads may use copies.
class digest_chain {
 public:
  static constexpr size_t segment_digests = 64; ///< 2 KiB

  size_t size() const { return size_; }
  const digest& operator[](size_t i) const { return segment_at(i / segment_digests)[i % segment_digests]; }

  /// Returns the first `count` digests. Precondition: `count` <= `size`.
  digest_chain cut(size_t count) const;

  /// Returns these digests followed by `more`.
  digest_chain extended(std::span<const digest> more) const;

  /// Returns all digests from number `first` on in one contiguous vector, with capacity for `more` others.
  /// Precondition: `first` <= `size`.
  std::vector<digest> copy(size_t more = 0, size_t first = 0) const;

  /// Memory of the digests, counted as if they were not shared.
  uint64_t bytes() const;

 private:
  using segment = std::shared_ptr<const digest[]>;
  using segment_list = std::vector<segment>;

  size_t full_segments() const { return size_ / segment_digests; }
  const segment& segment_at(size_t number) const {
    return number < full_segments() ? (*full_)[number] : begun_;
  }

  std::shared_ptr<const segment_list> full_; ///< null: the chain is short, as most are, and needs no list
  /// the segment after the full ones; null: the chain ends with a full one
  segment begun_;
  /// digests in `begun_`; the segment may have more than belong to this chain
  uint32_t begun_digests_ = 0;
  uint32_t size_ = 0;
};

/// The root of a session's digest chain; the same for all its turns and forks.
struct session_root {
  std::optional<digest> seed; ///< parent of the first block, if the client chose one
  std::string lora;           ///< LoRA adapter, as in `extra_keys`
  std::string salt;
};
using session_root_ptr = std::shared_ptr<const session_root>;

/// Immutable: a turn makes a new state, which shares the digests. Safe on any thread.
class session_state {
 public:
  /// A state without tokens.
  session_state() = default;
  /// `chain`: digests of the whole chunks. `tail`: the tokens after them, fewer than a chunk. `saved`: the
  /// last saved turn of the session, if these tokens continue it.
  session_state(digest_chain chain, std::vector<uint32_t> tail, uint32_t chunk_tokens, token_hasher& hasher,
                saved_turn_ptr saved = nullptr);

  uint64_t tokens() const { return whole_tokens() + tail_.size(); }
  /// tokens in whole chunks
  uint64_t whole_tokens() const { return uint64_t{chain_.size()} * chunk_tokens_; }
  const digest_chain& chain() const { return chain_; }
  const std::vector<uint32_t>& tail() const { return tail_; }

  /// Digest of all tokens: the digest of the last whole chunk, continued with the tail as one block without
  /// extra keys. Zeros if there are no tokens.
  const digest& last() const { return last_; }

  /// The saved turn whose tokens are a prefix of these; null: none.
  const saved_turn_ptr& saved() const { return saved_; }
  session_state with_saved(saved_turn_ptr saved) const {
    session_state other = *this;
    other.saved_ = std::move(saved);
    return other;
  }

  /// What the last lookup found of the whole chunks.
  const known_prefix& known() const { return known_; }
  session_state with_known(const known_prefix& known) const {
    session_state other = *this;
    other.known_ = known;
    return other;
  }

  /// Digest of the first `tokens` tokens, as `last` computes it. None inside a whole chunk, whose tokens are
  /// not known. Precondition: `tokens` <= `tokens()`.
  std::optional<digest> digest_at(uint64_t tokens, token_hasher& hasher) const;

  /// Returns the state of the first `tokens` tokens. Inside a whole chunk it is cut back to the start of that
  /// chunk.
  session_state cut(uint64_t tokens, token_hasher& hasher) const;

  /// Memory in bytes, counted as if nothing were shared.
  uint64_t bytes() const {
    uint64_t saved = saved_ ? sizeof(saved_turn) + saved_->cursors.capacity() * sizeof(uint64_t) : 0;
    return sizeof(session_state) + chain_.bytes() + tail_.capacity() * sizeof(uint32_t) + saved;
  }

 private:
  digest_chain chain_;
  std::vector<uint32_t> tail_;
  uint32_t chunk_tokens_ = 1;
  digest last_{};
  saved_turn_ptr saved_;
  known_prefix known_;
};
using session_state_ptr = std::shared_ptr<const session_state>;

} // namespace terrace
