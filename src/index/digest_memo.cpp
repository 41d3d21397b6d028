#include "index/digest_memo.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace terrace {

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
