#include "group/session_state.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

namespace {

digest digest_of(const digest_chain& chain, std::span<const uint32_t> tail, token_hasher& hasher) {
  if (tail.empty())
    return chain.size() == 0 ? digest{} : chain[chain.size() - 1];
  std::optional<digest> parent = hasher.root();
  if (chain.size() != 0)
    parent = chain[chain.size() - 1];
  return hasher.hash_block(parent, tail, {});
}

} // namespace

session_state::session_state(digest_chain chain, std::vector<uint32_t> tail, uint32_t chunk_tokens,
                             token_hasher& hasher, saved_turn_ptr saved)
    : chain_(std::move(chain)), tail_(std::move(tail)), chunk_tokens_(chunk_tokens),
      last_(digest_of(chain_, tail_, hasher)), saved_(std::move(saved)) {
  assert(tail_.size() < chunk_tokens_);
  assert(!saved_ || saved_->tokens() <= this->tokens());
}

std::optional<digest> session_state::digest_at(uint64_t tokens, token_hasher& hasher) const {
  assert(tokens <= this->tokens());
  if (tokens == this->tokens())
    return last_;
  if (tokens % chunk_tokens_ != 0 && tokens < whole_tokens())
    return std::nullopt;
  size_t whole = tokens / chunk_tokens_;
  if (tokens % chunk_tokens_ == 0)
    return whole == 0 ? digest{} : chain_[whole - 1];
  return digest_of(chain_, std::span(tail_).first(tokens - whole_tokens()), hasher);
}

session_state session_state::cut(uint64_t tokens, token_hasher& hasher) const {
  assert(tokens <= this->tokens());
  if (tokens == this->tokens())
    return *this;
  if (tokens < whole_tokens())
    tokens -= tokens % chunk_tokens_;
  auto saved = saved_ && saved_->tokens() <= tokens ? saved_ : nullptr;
  size_t chunks = std::min<size_t>(tokens / chunk_tokens_, chain_.size());
  auto rest = std::span(tail_).first(tokens < whole_tokens() ? 0 : tokens - whole_tokens());
  session_state part{chain_.cut(chunks), {rest.begin(), rest.end()}, chunk_tokens_, hasher, std::move(saved)};
  part.known_ = known_.first(chunks);
  return part;
}

} // namespace terrace
