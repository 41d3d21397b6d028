// Remembers digests of chunks that were hashed before, so that known tokens are compared instead of hashed.
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
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace terrace {

// The memory that all memos of a trust group share, and the digests that were hashed lately.

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

// The position of a prompt in a memo of digests.

/// A prompt that is asked for again finds the same entries in the same order. So an entry of a memo
/// (digest_memo.hpp) knows which entry was found after it the last time, and that one is compared first:
/// while the prompt follows the trail, nothing is hashed.
struct memo_trail {
  uint64_t last = 0; ///< the fast hash of the entry that was found last; 0: none
  uint64_t next = 0; ///< the fast hash of the entry that followed it the last time; 0: none
};

/// Everything that determines a chunk's digest in a space.
struct memo_key {
  const std::optional<digest>& parent;
  std::span<const uint32_t> tokens;
  std::span<const uint8_t> extra; ///< `extra_key_encoder::chunk`
};

/// The memo of one space. A fast hash finds an entry, and the entry counts only if its parent, all tokens and the extra
/// keys are equal to those in the key. So a wrong digest would take a collision of the space's own algorithm.
///
/// A chunk is kept when it is hashed for the second time (`memo_pool::seen`): a chunk that is asked for once costs
/// neither memory nor the time to copy it. Entries that were not used since the hand last passed are replaced first (a
/// clock).
///
/// Safe on any thread: entries are divided among parts, each with a lock that is held for one comparison.
class digest_memo {
 public:
  /// `pool` must outlive the memo. `hash_mask` is applied to the fast hash, so that tests can make it collide.
  explicit digest_memo(memo_pool_ptr pool, uint64_t hash_mask = UINT64_MAX);
  digest_memo(const digest_memo&) = delete;
  digest_memo& operator=(const digest_memo&) = delete;
  ~digest_memo();

  /// Returns the chunk's digest, or none if it is not known. Calls for the chunks of one prompt, in order,
  /// share one trail.
  std::optional<digest> find(const memo_key& key, memo_trail& way);

  /// Announces that `hashed` will soon be called with the digest.
  void expect(const digest& chunk) const { pool_->expect(number_, chunk); }
  /// The chunk was hashed. Returns true if it is worth keeping.
  bool hashed(const digest& chunk) { return pool_->seen(number_, chunk); }
  /// Keeps the digest if there is room for it or room can be made. Returns true if it was there already.
  bool keep(const memo_key& key, const digest& chunk);

  void count(uint64_t known, uint64_t hashed) { pool_->count(known, hashed); }

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  friend class memo_pool;
  static constexpr size_t parts = 8;
  static constexpr size_t spared_at_most = 8;  ///< used entries that the hand passes before it replaces one
  static constexpr uint64_t extra_max = 4'096; ///< bytes of a key's extra keys; chunks with more are not kept

  struct entry {
    uint64_t hash = 0;
    std::optional<digest> parent;
    digest chunk;
    bool used = false;
    uint64_t next = 0; ///< the hash of the entry found after this one, see memo_trail
    std::vector<uint32_t> tokens;
    std::vector<uint8_t> extra;

    bool is(const memo_key& key) const;
  };
  static uint64_t bytes_of(size_t tokens, size_t extra);
  static uint64_t bytes_of(const entry& of) { return bytes_of(of.tokens.size(), of.extra.size()); }

  struct part {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::unique_ptr<entry>> by_hash;
    std::vector<entry*> clock;
    size_t hand = 0;
  };

  uint64_t hash_of(const memo_key& key) const;
  /// Returns the digest in the entry with that hash, if the entry has this key.
  std::optional<digest> find(const memo_key& key, uint64_t hash, memo_trail& way);
  /// Notes that this entry follows the last entry of the trail.
  void lead(const memo_trail& way, uint64_t hash);
  part& part_of(uint64_t hash) { return (*parts_)[hash >> 32 & (parts - 1)]; }

  enum class room { taken, none, of_others };
  room make_room(part& share, uint64_t bytes);
  /// Returns the bytes of the replaced entry; 0: the part is empty.
  uint64_t replace_one(part& share);
  /// Frees about `bytes` and returns how many it freed.
  uint64_t shrink(uint64_t bytes);

  const memo_pool_ptr pool_;
  const uint64_t number_; ///< the memo's number in its pool
  const uint64_t hash_mask_;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<bool> joined_ = false;
  std::atomic<size_t> shrunk_ = 0; ///< the part from which `shrink` takes next
  std::shared_ptr<std::array<part, parts>> parts_ = std::make_shared<std::array<part, parts>>();
};

} // namespace terrace
