// A cache in a map that never evicts; it injects faults on demand.
#pragma once

#include "cli/replay_target.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace terrace::cli {

/// State that several targets share, as several connections share a daemon.
struct map_cache {
  std::mutex mutex;
  std::map<digest, std::vector<std::byte>> objects;
  size_t capacity = SIZE_MAX;            ///< number of objects; a store beyond it gives no_space
  std::optional<size_t> corrupt_chunk;   ///< one bit of this chunk's first byte is flipped in each load
  std::optional<size_t> deliver_at_most; ///< limit of chunks per load
  std::optional<size_t> offer_at_most;   ///< limit of chunks per lookup; the rest is to be recomputed
  /// Number of lookups, over all targets, after which the cache is lost.
  std::optional<size_t> lost_after;
  size_t lookups = 0, loads = 0, stores = 0;
  size_t largest_store = 0; ///< chunks in the largest store
  size_t prefetches = 0;
  std::vector<inference_facts> begun;
  std::vector<std::pair<uint64_t, inference_outcome>> ended;
};

class map_target final : public replay_target {
 public:
  map_target(map_cache& cache, size_t object_bytes, size_t buffer_objects)
      : cache_(cache), object_bytes_(object_bytes), buffer_(object_bytes * buffer_objects) {}

  std::span<std::byte> buffer() override { return buffer_; }
  size_t object_bytes() const override { return object_bytes_; }

  uint64_t begin_inference(const inference_facts& facts) override {
    std::lock_guard lock(cache_.mutex);
    cache_.begun.push_back(facts);
    return cache_.begun.size();
  }
  result<void> end_inference(uint64_t inference, const inference_outcome& outcome) override {
    std::lock_guard lock(cache_.mutex);
    cache_.ended.emplace_back(inference, outcome);
    return {};
  }

  result<std::vector<tier_kind>> lookup(std::span<const digest> chunks) override {
    std::lock_guard lock(cache_.mutex);
    if (cache_.lost_after && cache_.lookups >= *cache_.lost_after)
      alive_ = false;
    if (!alive_)
      return fail(errc::gone, "the daemon has gone");
    ++cache_.lookups;
    found_.clear();
    recompute_chunks_ = 0;
    std::vector<tier_kind> tiers;
    for (const digest& chunk : chunks) {
      if (!cache_.objects.contains(chunk))
        break;
      if (cache_.offer_at_most && tiers.size() == *cache_.offer_at_most) {
        ++recompute_chunks_;
        continue;
      }
      found_.push_back(chunk);
      tiers.push_back(tiers.size() % 2 == 0 ? tier_kind::host : tier_kind::disk);
    }
    return tiers;
  }

  uint64_t recompute_chunks() const override { return recompute_chunks_; }

  result<void> prefetch(std::span<const digest> chunks) override {
    std::lock_guard lock(cache_.mutex);
    ++cache_.prefetches;
    asked_ += chunks.size();
    return {};
  }
  prefetched take_prefetched(bool all) override {
    if (!all)
      return {};
    return {.requests = cache_.prefetches, .expected = asked_, .delivered = asked_ - 1, .failed = 0};
  }

  result<size_t> load(size_t first, size_t count) override {
    std::lock_guard lock(cache_.mutex);
    ++cache_.loads;
    count = std::min(count, cache_.deliver_at_most.value_or(count));
    for (size_t i = 0; i < count; ++i) {
      auto into = buffer_.begin() + static_cast<ptrdiff_t>(i * object_bytes_);
      std::ranges::copy(cache_.objects.at(found_.at(first + i)), into);
      if (cache_.corrupt_chunk == first + i)
        *into ^= std::byte{1};
    }
    return count;
  }

  result<stored> store(std::span<const digest> prefix, size_t count) override {
    std::lock_guard lock(cache_.mutex);
    ++cache_.stores;
    cache_.largest_store = std::max(cache_.largest_store, count);
    stored answer;
    for (size_t i = 0; i < count; ++i) {
      const digest& chunk = prefix[prefix.size() - count + i];
      if (cache_.objects.size() >= cache_.capacity && !cache_.objects.contains(chunk))
        return fail(errc::no_space, "all objects are leased");
      auto from = buffer_.begin() + static_cast<ptrdiff_t>(i * object_bytes_);
      bool is_new =
          cache_.objects.try_emplace(chunk, from, from + static_cast<ptrdiff_t>(object_bytes_)).second;
      ++(is_new ? answer.written : answer.present);
    }
    return answer;
  }

  void release() override { found_.clear(); }
  bool alive() const override { return alive_; }

 private:
  map_cache& cache_;
  size_t object_bytes_;
  std::vector<std::byte> buffer_;
  std::vector<digest> found_;
  size_t asked_ = 0;
  uint64_t recompute_chunks_ = 0;
  bool alive_ = true;
};

} // namespace terrace::cli
