// The memory that all memos of a trust group share, and what was hashed lately.
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

/// Divides `bytes_max` among the memos (digest_memo.hpp). One alone may use all of it. When it is used up, a memo that
/// has less than its share, an equal part for each memo that has entries, takes memory from those that have more; the others
/// replace their own entries. So no space loses its share, whatever the clients of other spaces ask.
///
/// Safe on any thread. Must outlive its memos.
class memo_pool {
 public:
  struct options {
    uint64_t bytes_max = 64ULL << 20;
    uint64_t secret = 0; ///< of the fast hash; unknown to clients, who could make prompts collide
    /// Destroys what a memo leaves behind, later and elsewhere: many entries take milliseconds. Null: at once.
    std::function<void(std::shared_ptr<void>)> dispose;
  };

  explicit memo_pool(options o);
  memo_pool(const memo_pool&) = delete;
  memo_pool& operator=(const memo_pool&) = delete;

  struct counts {
    uint64_t known = 0;  ///< chunks whose digest was found
    uint64_t hashed = 0; ///< chunks that were hashed
    uint64_t bytes = 0;  ///< of all entries
  };
  counts now() const;
  uint64_t bytes_max() const { return options_.bytes_max; }

 private:
  friend class digest_memo;
  static constexpr size_t recent_sets = 8'192;
  static constexpr size_t set_size = 4;       ///< so that the chunks of one prompt rarely displace each other
  static constexpr size_t asked_at_most = 16; ///< memos, for memory
  static constexpr uint64_t taken_at_least = 64 << 10; ///< bytes, from a memo

  /// True if the digest was among the last ones, about; from now on it is.
  bool seen(uint64_t space, const digest& chunk);
  /// Fetches what `seen` reads, which is in no cache between the chunks of a prompt.
  void expect(uint64_t space, const digest& chunk) const;
  void count(uint64_t known, uint64_t hashed);

  bool take(uint64_t bytes); ///< false: there is not enough
  void give_back(uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t share() const {
    return options_.bytes_max / std::max<size_t>(1, joined_.load(std::memory_order_relaxed));
  }
  /// Takes about so much from memos that have more than their share. No lock of a memo may be held.
  void reclaim(uint64_t bytes);

  void join(digest_memo& memo); ///< before its first entry
  void leave(digest_memo& memo);

  const options options_;
  using recent_set = std::array<std::atomic<uint32_t>, set_size>; ///< the newest first
  uint64_t name_of(uint64_t space, const digest& chunk) const;
  static size_t set_of(uint64_t name) { return name >> 40 & (recent_sets - 1); }
  std::unique_ptr<recent_set[]> recent_;
  std::atomic<uint64_t> bytes_ = 0, known_ = 0, hashed_ = 0;
  std::atomic<size_t> joined_ = 0;
  std::atomic<uint64_t> next_space_ = 1;
  std::mutex mutex_; ///< of the rest; before those of memos
  std::vector<digest_memo*> memos_;
  size_t next_asked_ = 0;
};
using memo_pool_ptr = std::shared_ptr<memo_pool>;

} // namespace terrace
