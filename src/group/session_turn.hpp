// One turn of a session: the new tokens, hashed onto what the session has.
#pragma once

#include "index/prefix_resolver.hpp"
#include "group/session_state.hpp"

#include <memory>
#include <span>
#include <vector>

namespace terrace {

/// What a client sends.
struct turn_request {
  uint64_t base_tokens = 0;         ///< so many tokens of the session are unchanged
  std::span<const uint8_t> base;    ///< digest of these, or of the whole session; empty if `base_tokens` is 0
  std::span<const uint32_t> tokens; ///< of the prompt, from `base_tokens` on
  std::vector<media_item> items;    ///< all that overlap tokens from `first_token` on
  bool tail = false;                ///< the tokens after the last whole chunk are a chunk of the prompt, too
};

/// The caller hashes `input` with a prefix_resolver, unless there is nothing to hash, and passes the chunks to `finish`.
/// The work is that of the new tokens and of less than one chunk before them, however long the session is.
class session_turn {
 public:
  /// What the request continues is checked against `from`. `root` may be null. The request's spans must outlive the
  /// turn. Errors: `gone`, if the session is not what the client takes it for: it sends the whole prompt then;
  /// `bad_request`, also for a base inside a whole chunk, whose tokens are not known any more.
  /// `saved`: the last saved turn of the session; null: none.
  static result<session_turn> begin(const space_spec& spec, token_hasher& hasher, session_state_ptr from,
                                    session_root_ptr root, turn_request asked,
                                    saved_turn_ptr saved = nullptr);

  /// How many tokens the session has afterwards.
  uint64_t tokens() const { return first_token_ + hashed().size(); }
  /// Where the hashing begins: the last end of a chunk at or before the base.
  uint64_t first_token() const { return first_token_; }

  bool has_to_hash() const { return !hashed().empty(); }
  /// For a resolver that this turn outlives, without being moved. Its chunks are digests of the chain.
  prefix_input input() const;

  /// `hashed`: the chunks of `input`. Returns the keys of those of the whole prompt, but for the first `left_out`, of which the session
  /// has at least as many and which are not all of them.
  chunk_prefix finish(const chunk_prefix& hashed, token_hasher& hasher, size_t left_out = 0);

  /// What is known of the chunks that the turn keeps.
  known_prefix known() const { return from_->known().first(chunks_kept_); }

  /// The session after this turn; call `finish` before.
  const session_state_ptr& after() const { return after_; }

 private:
  session_turn() = default;
  bool continues_saved(const digest_chain& chain, token_hasher& hasher) const;
  extra_keys extra() const; ///< of the tokens that are hashed
  /// The key of the chunk with this number.
  digest key_of(size_t number, const digest& chained, token_hasher& hasher) const;
  std::span<const uint32_t> hashed() const { return joined_.empty() ? asked_.tokens : joined_; }

  session_state_ptr from_, after_;
  session_root_ptr root_;
  saved_turn_ptr saved_;
  turn_request asked_;
  uint32_t chunk_tokens_ = 1;
  bool first_is_block_ = false; ///< the first chunk of a prompt is one hash block
  size_t width_ = digest::max_size;
  uint64_t first_token_ = 0;
  size_t chunks_kept_ = 0;
  std::vector<uint32_t> joined_; ///< the tail up to the base, and the new tokens; empty if there is no tail
};

} // namespace terrace
