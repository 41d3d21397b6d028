// One turn of a session: it hashes the new tokens onto the session's chain.
#pragma once

#include "group/session_state.hpp"
#include "index/prefix_resolver.hpp"

#include <memory>
#include <span>
#include <vector>

namespace terrace {

/// The request that a client sends.
struct turn_request {
  uint64_t base_tokens = 0; ///< tokens of the session that are unchanged
  /// digest of the unchanged tokens, or of the whole session; empty if `base_tokens` is 0
  std::span<const uint8_t> base;
  std::span<const uint32_t> tokens; ///< tokens of the prompt from `base_tokens` on
  std::vector<media_item> items;    ///< all items that overlap tokens from `first_token` on
  bool tail = false;                ///< the tokens after the last whole chunk form a chunk of the prompt, too
};

/// The caller hashes `input` with a prefix_resolver, unless there is nothing to hash, and passes the chunks
/// to `finish`. The work is proportional to the new tokens plus less than one chunk before them, however long
/// the session is.
class session_turn {
 public:
  /// Checks the base that the request continues against `from`. `root` may be null. The request's spans must
  /// outlive the turn. `saved`: the last saved turn of the session; null: none. Errors: `gone` if the session
  /// does not have the tokens that the client assumes, upon which the client sends the whole prompt;
  /// `bad_request`, also for a base inside a whole chunk, whose tokens are no longer known.
  static result<session_turn> begin(const space_spec& spec, token_hasher& hasher, session_state_ptr from,
                                    session_root_ptr root, turn_request asked,
                                    saved_turn_ptr saved = nullptr);

  /// Number of tokens that the session has after the turn.
  uint64_t tokens() const { return first_token_ + hashed().size(); }
  /// Position where hashing begins: the last chunk boundary at or before the base.
  uint64_t first_token() const { return first_token_; }

  bool has_to_hash() const { return !hashed().empty(); }
  /// Input for a resolver. The turn must outlive the resolver and must not be moved meanwhile. The chunks
  /// that it returns are digests of the chain.
  prefix_input input() const;

  /// `hashed`: the chunks of `input`. Returns the keys of all chunks of the prompt except the first
  /// `left_out`. The session must have these, and they must not be all chunks.
  chunk_prefix finish(const chunk_prefix& hashed, token_hasher& hasher, size_t left_out = 0);

  /// What is known of the chunks that the turn keeps.
  known_prefix known() const { return from_->known().first(chunks_kept_); }

  /// The session's state after this turn; call `finish` first.
  const session_state_ptr& after() const { return after_; }

 private:
  session_turn() = default;
  bool continues_saved(const digest_chain& chain, token_hasher& hasher) const;
  extra_keys extra() const; ///< extra keys of the tokens that are hashed
  /// Key of the chunk with this number.
  digest key_of(size_t number, const digest& chained, token_hasher& hasher) const;
  std::span<const uint32_t> hashed() const { return joined_.empty() ? asked_.tokens : joined_; }

  session_state_ptr from_, after_;
  session_root_ptr root_;
  saved_turn_ptr saved_;
  turn_request asked_;
  uint32_t chunk_tokens_ = 1;
  bool first_is_block_ = false; ///< the first chunk of a prompt is hashed as one block
  size_t width_ = digest::max_size;
  uint64_t first_token_ = 0;
  size_t chunks_kept_ = 0;
  std::vector<uint32_t> joined_; ///< the tail up to the base, then the new tokens; empty if there is no tail
};

} // namespace terrace
