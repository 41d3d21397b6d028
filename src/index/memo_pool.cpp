#include "index/memo_pool.hpp"

#include "index/digest_memo.hpp"

#include <algorithm>

namespace terrace {

memo_pool::memo_pool(options o)
    : options_(std::move(o)), recent_(std::make_unique<recent_set[]>(recent_sets)) {}

memo_pool::counts memo_pool::now() const {
  return {known_.load(std::memory_order_relaxed), hashed_.load(std::memory_order_relaxed),
          bytes_.load(std::memory_order_relaxed)};
}

uint64_t memo_pool::name_of(uint64_t space, const digest& chunk) const {
  uint64_t words[2];
  static_assert(sizeof words <= digest::max_size);
  std::memcpy(words, chunk.bytes.data(), sizeof words); // digests of 8 bytes have zeros in the second one
  return (words[0] + words[1] + space + options_.secret) * 0x9e3779b97f4a7c15;
}

void memo_pool::expect(uint64_t space, const digest& chunk) const {
  __builtin_prefetch(&recent_[set_of(name_of(space, chunk))], 1);
}

bool memo_pool::seen(uint64_t space, const digest& chunk) {
  uint64_t name = name_of(space, chunk);
  recent_set& set = recent_[set_of(name)];
  auto mark = static_cast<uint32_t>(name >> 8);
  for (auto& one : set)
    if (one.load(std::memory_order_relaxed) == mark)
      return true;
  for (size_t i = set_size - 1; i > 0; --i)
    set[i].store(set[i - 1].load(std::memory_order_relaxed), std::memory_order_relaxed);
  set[0].store(mark, std::memory_order_relaxed);
  return false;
}

void memo_pool::count(uint64_t known, uint64_t hashed) {
  known_.fetch_add(known, std::memory_order_relaxed);
  hashed_.fetch_add(hashed, std::memory_order_relaxed);
}

bool memo_pool::take(uint64_t bytes) {
  uint64_t used = bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > options_.bytes_max - used)
      return false;
  } while (!bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void memo_pool::reclaim(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  uint64_t freed = 0;
  for (size_t asked = 0; asked < std::min(asked_at_most, memos_.size()) && freed < bytes; ++asked) {
    next_asked_ = (next_asked_ + 1) % memos_.size();
    digest_memo& memo = *memos_[next_asked_];
    uint64_t has = memo.bytes(), fair = share();
    if (has > fair)
      freed += memo.shrink(std::min(has - fair, std::max(bytes, taken_at_least)));
  }
}

void memo_pool::join(digest_memo& memo) {
  std::lock_guard lock(mutex_);
  if (std::find(memos_.begin(), memos_.end(), &memo) != memos_.end())
    return; // two threads were the first
  memos_.push_back(&memo);
  joined_.store(memos_.size(), std::memory_order_relaxed);
}

void memo_pool::leave(digest_memo& memo) {
  std::lock_guard lock(mutex_);
  std::erase(memos_, &memo);
  joined_.store(memos_.size(), std::memory_order_relaxed);
}

} // namespace terrace
