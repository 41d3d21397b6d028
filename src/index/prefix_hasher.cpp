#include "index/prefix_hasher.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

prefix_hasher::prefix_hasher(token_hasher& hasher, chunk_shape shape, const position& begin,
                             std::span<const uint32_t> tokens, const extra_keys& extra)
    : hasher_(&hasher), shape_(shape), tokens_(tokens), extra_(extra), first_token_(begin.first_token),
      end_(tokens.size() - tokens.size() % shape.chunk_tokens),
      parent_(begin.parent ? begin.parent : hasher.root()) {
  assert(shape.hash_block_tokens > 0 && shape.chunk_tokens % shape.hash_block_tokens == 0);
  chunks_.reserve(end_ / shape.chunk_tokens);
}

bool prefix_hasher::step(size_t work_at_most) {
  const size_t block = shape_.hash_block_tokens;
  for (size_t work = 0; !done() && work < work_at_most;) {
    auto extra = extra_.block(first_token_ + next_, shape_.hash_block_tokens);
    parent_ = hasher_->hash_block(parent_, tokens_.subspan(next_, block), extra);
    next_ += block;
    if (next_ % shape_.chunk_tokens == 0)
      chunks_.push_back(*parent_);
    work += block + hash_call_work;
    if (!extra.empty())
      work += hash_call_work + extra.size() / 4;
  }
  return done();
}

std::vector<digest> hash_chunks(token_hasher& hasher, chunk_shape shape, const prefix_hasher::position& begin,
                                std::span<const uint32_t> tokens, const extra_keys& extra) {
  prefix_hasher work(hasher, shape, begin, tokens, extra);
  while (!work.step(SIZE_MAX)) {
  }
  return work.take_chunks();
}

} // namespace terrace
