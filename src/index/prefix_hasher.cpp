#include "index/prefix_hasher.hpp"

#include "index/cbor.hpp"
#include "index/digest_memo.hpp"
#include "index/sha256.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

namespace {

constexpr size_t compared_tokens = 8; ///< comparing this many tokens takes as long as hashing one

} // namespace

prefix_hasher::prefix_hasher(token_hasher& hasher, chunk_shape shape, const position& begin,
                             std::span<const uint32_t> tokens, const extra_keys& extra, digest_memo* memo)
    : hasher_(&hasher), shape_(shape), tokens_(tokens), extra_(extra, hasher.extra_form()),
      first_token_(begin.first_token), end_(tokens.size() - tokens.size() % shape.chunk_tokens),
      parent_(begin.parent ? begin.parent : hasher.root()), memo_(memo), asking_(memo != nullptr),
      chunk_extra_(extra, hasher.extra_form()) {
  assert(shape.hash_block_tokens > 0 && shape.chunk_tokens % shape.hash_block_tokens == 0);
  chunks_.reserve(end_ / shape.chunk_tokens);
}

bool prefix_hasher::step(size_t work_at_most) {
  for (size_t work = 0; !done() && work < work_at_most;)
    work += asking_ && next_ % shape_.chunk_tokens == 0 ? find_chunk() : hash_block();
  if (memo_ != nullptr)
    memo_->count(std::exchange(found_, 0), std::exchange(hashed_, 0));
  return done();
}

memo_key prefix_hasher::key_of(size_t chunk_begin, const std::optional<digest>& parent) {
  return {parent, tokens_.subspan(chunk_begin, shape_.chunk_tokens),
          chunk_extra_.chunk(first_token_ + chunk_begin, shape_.chunk_tokens)};
}

/// Looks up the chunk that begins at `next_` in the memo. Returns the work.
size_t prefix_hasher::find_chunk() {
  tell_memo(); // the extra keys are encoded in order
  memo_key key = key_of(next_, parent_);
  auto found = memo_->find(key, way_);
  asking_ = found.has_value();
  if (found) {
    parent_ = found;
    chunks_.push_back(*found);
    next_ += shape_.chunk_tokens;
    ++found_;
  }
  return hash_call_work + shape_.chunk_tokens / compared_tokens + key.extra.size() / 4;
}

size_t prefix_hasher::hash_block() {
  const size_t block = shape_.hash_block_tokens;
  auto extra = extra_.block(first_token_ + next_, shape_.hash_block_tokens);
  if (next_ % shape_.chunk_tokens == 0)
    chunk_parent_ = parent_;
  parent_ = hasher_->hash_block(parent_, tokens_.subspan(next_, block), extra);
  size_t work = block + hash_call_work;
  if (!extra.empty())
    work += hash_call_work + extra.size() / 4;
  next_ += block;
  if (next_ % shape_.chunk_tokens == 0)
    end_chunk();
  return work;
}

void prefix_hasher::end_chunk() {
  chunks_.push_back(*parent_);
  if (memo_ == nullptr)
    return;
  ++hashed_;
  memo_->expect(*parent_);
  tell_memo();
  untold_ = {next_ - shape_.chunk_tokens, chunk_parent_, *parent_};
  if (done())
    tell_memo();
}

void prefix_hasher::tell_memo() {
  if (untold_ && memo_->hashed(untold_->chunk))
    // The memo may know later chunks again.
    asking_ = memo_->keep(key_of(untold_->begin, untold_->parent), untold_->chunk);
  untold_.reset();
}

std::vector<digest> hash_chunks(token_hasher& hasher, chunk_shape shape, const prefix_hasher::position& begin,
                                std::span<const uint32_t> tokens, const extra_keys& extra) {
  prefix_hasher work(hasher, shape, begin, tokens, extra);
  while (!work.step(SIZE_MAX)) {
  }
  return work.take_chunks();
}

digest first_block_key(const digest& block, const extra_keys& extra, extra_key_form form, size_t width) {
  if (form != extra_key_form::vllm || (extra.lora.empty() && extra.salt.empty()))
    return block;
  cbor::buffer head;
  cbor::put_text(head, "terrace first block v1");
  cbor::put_array(head, 2);
  cbor::put_text(head, extra.lora);
  cbor::put_text(head, extra.salt);
  sha256 hash;
  hash.begin();
  hash.update(head);
  hash.update(std::span<const uint8_t>(block.bytes).first(width));
  return digest::from(std::span<const uint8_t>(hash.finish().bytes).first(width));
}

digest tail_digest(token_hasher& hasher, const std::optional<digest>& parent, uint64_t first_token,
                   std::span<const uint32_t> tokens, const extra_keys& extra) {
  assert(!tokens.empty());
  extra_key_encoder keys(extra, hasher.extra_form());
  digest block = hasher.hash_block(parent ? parent : hasher.root(), tokens,
                                   keys.block(first_token, static_cast<uint32_t>(tokens.size())));
  if (first_token == 0)
    block = first_block_key(block, extra, hasher.extra_form(), hasher.width());
  cbor::buffer head;
  cbor::put_text(head, "terrace tail v1");
  sha256 hash;
  hash.begin();
  hash.update(head);
  hash.update(std::span<const uint8_t>(block.bytes).first(hasher.width()));
  return digest::from(std::span<const uint8_t>(hash.finish().bytes).first(hasher.width()));
}

} // namespace terrace
