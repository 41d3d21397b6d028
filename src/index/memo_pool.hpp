// The memory that all memos of a trust group share, and the digests that were hashed lately.
#pragma once

#include "base/digest.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace terrace {

class digest_memo;

/// Divides `bytes_max` among the memos (digest_memo.hpp). A single memo may use all of it. The share of a
/// memo is an equal part for each memo that has entries. When the memory is used up, a memo that has less
/// than its share takes memory from those that have more; the others replace their own entries. So no space
/// loses its share, whatever the clients of other spaces ask for.
///
/// Safe on any thread. Must outlive its memos.
class memo_pool {
 public:
  struct options {
    uint64_t bytes_max = 64ULL << 20;
    /// seeds the fast hash; clients must not know it, or they could make prompts collide
    uint64_t secret = 0;
    /// Destroys the entries that a memo leaves behind, later and on another thread, since many entries take
    /// milliseconds. Null: they are destroyed at once.
    std::function<void(std::shared_ptr<void>)> dispose;
  };

  explicit memo_pool(options o);
  memo_pool(const memo_pool&) = delete;
  memo_pool& operator=(const memo_pool&) = delete;

  struct counts {
    uint64_t known = 0;  ///< chunks whose digest was found
    uint64_t hashed = 0; ///< chunks that were hashed
    uint64_t bytes = 0;  ///< memory of all entries
  };
  counts now() const;
  uint64_t bytes_max() const { return options_.bytes_max; }

 private:
  friend class digest_memo;
  static constexpr size_t recent_sets = 8'192;
  /// large enough that the chunks of one prompt rarely displace each other
  static constexpr size_t set_size = 4;
  static constexpr size_t asked_at_most = 16; ///< how many memos one reclaim asks for memory
  /// how many bytes a reclaim takes from a memo, at least
  static constexpr uint64_t taken_at_least = 64 << 10;

  /// Returns true if the digest was, with high probability, among the last ones seen; from now on it is.
  bool seen(uint64_t space, const digest& chunk);
  /// Loads what `seen` will read into the cache, where it does not stay between the chunks of a prompt.
  void expect(uint64_t space, const digest& chunk) const;
  void count(uint64_t known, uint64_t hashed);

  bool take(uint64_t bytes); ///< false: there is not enough memory
  void give_back(uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t share() const {
    return options_.bytes_max / std::max<size_t>(1, joined_.load(std::memory_order_relaxed));
  }
  /// Takes about `bytes` from memos that have more than their share. The caller must hold no lock of a memo.
  void reclaim(uint64_t bytes);

  void join(digest_memo& memo); ///< call before the memo's first entry
  void leave(digest_memo& memo);

  const options options_;
  using recent_set = std::array<std::atomic<uint32_t>, set_size>; ///< the newest first
  uint64_t name_of(uint64_t space, const digest& chunk) const;
  static size_t set_of(uint64_t name) { return name >> 40 & (recent_sets - 1); }
  std::unique_ptr<recent_set[]> recent_;
  std::atomic<uint64_t> bytes_ = 0, known_ = 0, hashed_ = 0;
  std::atomic<size_t> joined_ = 0;
  std::atomic<uint64_t> next_space_ = 1;
  std::mutex mutex_; ///< protects the members below; locked before the locks of memos
  std::vector<digest_memo*> memos_;
  size_t next_asked_ = 0;
};
using memo_pool_ptr = std::shared_ptr<memo_pool>;

} // namespace terrace
