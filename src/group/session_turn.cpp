#include "group/session_turn.hpp"

#include "index/chunk_layout.hpp"
#include "index/prefix_hasher.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace terrace {

namespace {

std::string decimal(uint64_t number) { return std::to_string(number); }

tl::unexpected<error> wrong(std::string text) {
  return fail(errc::bad_request, "session: " + std::move(text));
}

result<void> check_size(const space_spec& spec, uint64_t tokens, bool tail) {
  uint64_t chunks = (tokens + (tail ? spec.chunk_tokens - 1 : 0)) / spec.chunk_tokens;
  if (tokens > prefix_input::tokens_max)
    return wrong("the prompt has " + decimal(tokens) + " tokens: expected at most " +
                 decimal(prefix_input::tokens_max));
  if (chunks > prefix_input::chunks_max ||
      chunks * chunk_layout(spec).objects_per_chunk() > prefix_input::objects_max)
    return wrong("the prompt has " + decimal(chunks) + " chunks: expected at most " +
                 decimal(prefix_input::chunks_max) + ", with at most " + decimal(prefix_input::objects_max) +
                 " objects over all pools and ranks");
  return {};
}

result<void> check_base(const session_state& from, const turn_request& asked, uint32_t chunk_tokens,
                        token_hasher& hasher) {
  if (asked.base_tokens == 0) {
    if (!asked.base.empty())
      return wrong("it has a digest of 0 tokens: leave it out");
    return {};
  }
  if (asked.base.size() != hasher.width())
    return wrong("the digest of what the tokens continue has " + decimal(asked.base.size()) +
                 " bytes: expected " + decimal(hasher.width()));
  std::string otherwise = ", not what the request continues (" + decimal(asked.base_tokens) +
                          "): send the whole prompt, with parent_tokens 0";
  if (asked.base_tokens > from.tokens())
    return fail(errc::gone, "the session has " + decimal(from.tokens()) + " tokens" + otherwise);
  digest told = digest::from(asked.base);
  if (told != from.last() && from.digest_at(asked.base_tokens, hasher) != told)
    return fail(errc::gone,
                "the session has " + decimal(from.tokens()) + " tokens with another digest" + otherwise);
  if (asked.base_tokens < from.whole_tokens() && asked.base_tokens % chunk_tokens != 0)
    return wrong("its tokens between " + decimal(asked.base_tokens / chunk_tokens * chunk_tokens) + " and " +
                 decimal(asked.base_tokens) + " are not known any more: send the tokens from " +
                 decimal(asked.base_tokens / chunk_tokens * chunk_tokens) + " on");
  return {};
}

} // namespace

result<session_turn> session_turn::begin(const space_spec& spec, token_hasher& hasher, session_state_ptr from,
                                         session_root_ptr root, turn_request asked, saved_turn_ptr saved) {
  if (auto valid = check_base(*from, asked, spec.chunk_tokens, hasher); !valid)
    return tl::unexpected(valid.error());
  if (auto valid = check_size(spec, asked.base_tokens + asked.tokens.size(), asked.tail); !valid)
    return tl::unexpected(valid.error());
  if (asked.base_tokens + asked.tokens.size() == 0)
    return wrong("the prompt has no tokens");
  session_turn turn;
  turn.chunk_tokens_ = spec.chunk_tokens;
  turn.first_is_block_ = first_chunk_is_a_block(spec);
  turn.width_ = hasher.width();
  turn.chunks_kept_ = asked.base_tokens / spec.chunk_tokens;
  turn.first_token_ = uint64_t{turn.chunks_kept_} * spec.chunk_tokens;
  if (auto kept = asked.base_tokens - turn.first_token_; kept != 0) {
    auto tail = std::span(from->tail()).first(kept);
    turn.joined_.reserve(kept + asked.tokens.size());
    turn.joined_.assign(tail.begin(), tail.end());
    turn.joined_.insert(turn.joined_.end(), asked.tokens.begin(), asked.tokens.end());
  }
  turn.from_ = std::move(from);
  turn.root_ = std::move(root);
  turn.saved_ = std::move(saved);
  turn.asked_ = std::move(asked);
  return turn;
}

prefix_input session_turn::input() const {
  prefix_input input;
  input.tokens = hashed();
  input.parent_tokens = first_token_;
  const digest* parent = nullptr;
  if (chunks_kept_ != 0)
    parent = &from_->chain()[chunks_kept_ - 1];
  else if (root_ && root_->seed)
    parent = &*root_->seed;
  if (parent != nullptr)
    input.parent = std::span(parent->bytes).first(width_);
  input.extra = extra();
  input.tail = asked_.tail;
  input.of_session = true;
  return input;
}

extra_keys session_turn::extra() const {
  extra_keys keys;
  if (root_) {
    keys.lora = root_->lora;
    keys.salt = root_->salt;
  }
  keys.items = asked_.items;
  return keys;
}

digest session_turn::key_of(size_t number, const digest& chained, token_hasher& hasher) const {
  if (number != 0 || !first_is_block_ || !root_)
    return chained;
  return first_block_key(chained, {.lora = root_->lora, .salt = root_->salt}, hasher.extra_form(), width_);
}

/// Returns whether the prompt begins with the tokens of the session's last saved turn. `chain`: digests of
/// the prompt's whole chunks.
bool session_turn::continues_saved(const digest_chain& chain, token_hasher& hasher) const {
  if (!saved_ || saved_->tokens() > tokens())
    return false;
  if (asked_.base_tokens >= saved_->tokens()) // the tokens before the base are unchanged
    return from_->saved() == saved_;
  if (saved_->tail_tokens == 0)
    return saved_->chunks != 0 &&
           key_of(saved_->chunks - 1, chain[saved_->chunks - 1], hasher) == saved_->key;
  uint64_t first = saved_->chunks * chunk_tokens_;
  assert(first >= first_token_); // the base is before the end of the tail, so its chunk is hashed again
  std::optional<digest> parent;
  if (root_)
    parent = root_->seed;
  if (saved_->chunks != 0)
    parent = chain[saved_->chunks - 1];
  return tail_digest(hasher, parent, first, hashed().subspan(first - first_token_, saved_->tail_tokens),
                     extra()) == saved_->key;
}

chunk_prefix session_turn::finish(const chunk_prefix& hashed_part, token_hasher& hasher, size_t left_out) {
  auto tokens = hashed();
  size_t whole_hashed = hashed_part.whole_chunks();
  assert(whole_hashed == tokens.size() / chunk_tokens_);
  auto fresh = std::span(hashed_part.chunks).first(whole_hashed);
  chunk_prefix whole;
  whole.prompt_tokens = this->tokens();
  whole.tail_tokens = hashed_part.tail_tokens;
  digest_chain kept = from_->chain().cut(chunks_kept_);
  if (size_t all = kept.size() + hashed_part.chunks.size(); all <= left_out)
    left_out = all == 0 ? 0 : all - 1;
  left_out = std::min(left_out, kept.size());
  whole.first_token = uint64_t{left_out} * chunk_tokens_;
  whole.chunks = kept.copy(hashed_part.chunks.size(), left_out);
  whole.chunks.insert(whole.chunks.end(), hashed_part.chunks.begin(), hashed_part.chunks.end());
  if (left_out == 0 && whole.whole_chunks() != 0)
    whole.chunks.front() = key_of(0, whole.chunks.front(), hasher);
  auto tail = tokens.subspan(whole_hashed * chunk_tokens_);
  digest_chain chain = kept.extended(fresh);
  auto saved = continues_saved(chain, hasher) ? saved_ : nullptr;
  session_state after(std::move(chain), std::vector<uint32_t>(tail.begin(), tail.end()), chunk_tokens_,
                      hasher, std::move(saved));
  after_ = std::make_shared<const session_state>(after.with_known(known()));
  return whole;
}

} // namespace terrace
