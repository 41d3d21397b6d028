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

digest_chain digest_chain::cut(size_t count) const {
  assert(count <= size_);
  digest_chain part;
  part.size_ = static_cast<uint32_t>(count);
  size_t full = part.full_segments();
  if (full == full_segments())
    part.full_ = full_;
  else if (full != 0) // the full segments are shared; the others are not kept alive
    part.full_ =
        std::make_shared<const segment_list>(full_->begin(), full_->begin() + static_cast<ptrdiff_t>(full));
  if (count % segment_digests != 0) {
    part.begun_ = segment_at(full);
    part.begun_digests_ = full < full_segments() ? segment_digests : begun_digests_;
  }
  return part;
}

digest_chain digest_chain::extended(std::span<const digest> more) const {
  if (more.empty())
    return *this;
  digest_chain longer;
  longer.size_ = static_cast<uint32_t>(size_ + more.size());
  segment_list list;
  list.reserve(longer.full_segments());
  if (full_)
    list = *full_;
  // The last segment is copied, because others may have continued it differently.
  auto begun = std::span(begun_.get(), size_ % segment_digests);
  while (!more.empty()) {
    auto added = more.first(std::min(more.size(), segment_digests - begun.size()));
    // make_shared would allocate a larger block
    auto next = std::make_unique<digest[]>(begun.size() + added.size());
    std::ranges::copy(added, std::ranges::copy(begun, next.get()).out);
    size_t digests = begun.size() + added.size();
    if (digests == segment_digests) {
      list.push_back(std::move(next));
    } else {
      longer.begun_ = std::move(next);
      longer.begun_digests_ = static_cast<uint32_t>(digests);
    }
    begun = {};
    more = more.subspan(added.size());
  }
  if (!list.empty())
    longer.full_ =
        list.size() == full_segments() ? full_ : std::make_shared<const segment_list>(std::move(list));
  return longer;
}

std::vector<digest> digest_chain::copy(size_t more, size_t first) const {
  assert(first <= size_);
  std::vector<digest> all;
  all.reserve(size_ - first + more);
  for (size_t i = first; i < size_;) {
    size_t at = i % segment_digests;
    auto part =
        std::span(segment_at(i / segment_digests).get() + at, std::min(segment_digests - at, size_ - i));
    all.insert(all.end(), part.begin(), part.end());
    i += part.size();
  }
  return all;
}

uint64_t digest_chain::bytes() const {
  constexpr uint64_t counts = 3 * sizeof(void*); // the reference counts of shared segments
  uint64_t bytes = begun_ ? counts + begun_digests_ * sizeof(digest) : 0;
  if (full_)
    bytes += counts + sizeof(segment_list) + full_->capacity() * sizeof(segment) +
             full_segments() * (counts + segment_digests * sizeof(digest));
  return bytes;
}

} // namespace terrace
