#include "index/digest_memo.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <xxhash.h>

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

bool digest_memo::entry::is(const memo_key& key) const {
  return parent == key.parent && std::ranges::equal(extra, key.extra) && tokens.size() == key.tokens.size() &&
         std::memcmp(tokens.data(), key.tokens.data(), key.tokens.size_bytes()) == 0;
}

digest_memo::digest_memo(memo_pool_ptr pool, uint64_t hash_mask)
    : pool_(std::move(pool)), number_(pool_->next_space_.fetch_add(1, std::memory_order_relaxed)),
      hash_mask_(hash_mask) {}

digest_memo::~digest_memo() {
  if (joined_.load(std::memory_order_acquire))
    pool_->leave(*this);
  pool_->give_back(bytes());
  if (pool_->options_.dispose)
    pool_->options_.dispose(std::move(parts_));
}

uint64_t digest_memo::bytes_of(size_t tokens, size_t extra) {
  constexpr uint64_t allocations =
      96; // the map's node, the clock's pointer, and what the heap adds to each block
  return sizeof(entry) + tokens * sizeof(uint32_t) + extra + allocations;
}

uint64_t digest_memo::hash_of(const memo_key& key) const {
  uint64_t hash = pool_->options_.secret + number_;
  if (key.parent)
    hash ^= XXH3_64bits(key.parent->bytes.data(), key.parent->bytes.size());
  hash = XXH3_64bits_withSeed(key.tokens.data(), key.tokens.size_bytes(), hash);
  if (!key.extra.empty())
    hash = XXH3_64bits_withSeed(key.extra.data(), key.extra.size(), hash);
  return hash & hash_mask_;
}

std::optional<digest> digest_memo::find(const memo_key& key, memo_trail& way) {
  if (bytes() == 0)
    return std::nullopt;
  if (way.next != 0)
    if (auto chunk = find(key, way.next, way))
      return chunk;
  uint64_t hash = hash_of(key);
  memo_trail before = way;
  auto chunk = find(key, hash, way);
  if (chunk && before.last != 0)
    lead(before, hash);
  return chunk;
}

std::optional<digest> digest_memo::find(const memo_key& key, uint64_t hash, memo_trail& way) {
  part& share = part_of(hash);
  std::lock_guard lock(share.mutex);
  auto found = share.by_hash.find(hash);
  if (found == share.by_hash.end() || !found->second->is(key))
    return std::nullopt;
  entry& is = *found->second;
  is.used = true;
  way = {hash, is.next};
  return is.chunk;
}

void digest_memo::lead(const memo_trail& way, uint64_t hash) {
  part& share = part_of(way.last);
  std::lock_guard lock(share.mutex);
  if (auto found = share.by_hash.find(way.last); found != share.by_hash.end())
    found->second->next = hash;
}

bool digest_memo::keep(const memo_key& key, const digest& chunk) {
  if (!joined_.load(std::memory_order_acquire)) {
    pool_->join(*this);
    joined_.store(true, std::memory_order_release);
  }
  uint64_t bytes = bytes_of(key.tokens.size(), key.extra.size());
  if (key.extra.size() > extra_max || bytes > pool_->share())
    return false;
  uint64_t hash = hash_of(key);
  part& share = part_of(hash);
  for (bool asked = false;; asked = true) {
    {
      std::lock_guard lock(share.mutex);
      if (auto found = share.by_hash.find(hash); found != share.by_hash.end()) {
        if (found->second->is(key))
          return true;
        found->second->used = false;
        std::iter_swap(std::ranges::find(share.clock, found->second.get()), share.clock.begin() + share.hand);
        replace_one(share);
      }
      auto got = make_room(share, bytes);
      if (got == room::none || (got == room::of_others && asked))
        return false;
      if (got == room::taken) {
        auto made = std::make_unique<entry>(entry{hash,
                                                  key.parent,
                                                  chunk,
                                                  false,
                                                  0,
                                                  {key.tokens.begin(), key.tokens.end()},
                                                  {key.extra.begin(), key.extra.end()}});
        share.clock.push_back(made.get());
        share.by_hash.emplace(hash, std::move(made));
        bytes_.fetch_add(bytes, std::memory_order_relaxed);
        return false;
      }
    }
    pool_->reclaim(bytes);
  }
}

/// Takes `bytes` from the pool. Replaces entries of this memo if the pool is used up and the memo has its share.
digest_memo::room digest_memo::make_room(part& share, uint64_t bytes) {
  while (!pool_->take(bytes)) {
    if (this->bytes() + bytes <= pool_->share())
      return room::of_others;
    if (replace_one(share) == 0)
      return room::none;
  }
  assert(pool_->now().bytes <= pool_->bytes_max());
  return room::taken;
}

uint64_t digest_memo::replace_one(part& share) {
  if (share.clock.empty())
    return 0;
  for (size_t spared = 0; spared < spared_at_most && share.clock[share.hand]->used; ++spared) {
    share.clock[share.hand]->used = false;
    share.hand = (share.hand + 1) % share.clock.size();
  }
  entry* gone = share.clock[share.hand];
  uint64_t bytes = bytes_of(*gone);
  share.clock[share.hand] =
      share.clock.back(); // the newest entry takes the place: its turn is after all others
  share.clock.pop_back();
  if (++share.hand >= share.clock.size())
    share.hand = 0;
  share.by_hash.erase(gone->hash);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  pool_->give_back(bytes);
  return bytes;
}

uint64_t digest_memo::shrink(uint64_t bytes) {
  uint64_t freed = 0;
  for (size_t tried = 0; tried < parts && freed < bytes; ++tried) {
    part& share = (*parts_)[shrunk_.fetch_add(1, std::memory_order_relaxed) % parts];
    std::lock_guard lock(share.mutex);
    while (freed < bytes) {
      uint64_t one = replace_one(share);
      if (one == 0)
        break;
      freed += one;
    }
  }
  return freed;
}

} // namespace terrace
