// Counts the host memory of a trust group that leases and their readers hold, in total and for each
// connection, and decides how much more a connection may lease.
#pragma once

#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "index/resident.hpp"
#include "memory/teardown.hpp"
#include "tier/objects/object_hold.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace terrace {

// Counts how often each object occurs.

/// Up to 64 objects with neighboring ids: bit n of `objects` is the object with the id 64 * `block` + n. Objects that were
/// stored together have such ids, so a lease counts 64 of them about as fast as one.
struct object_block {
  uint64_t block = 0;
  uint64_t objects = 0;

  static uint64_t of(object_id id) { return static_cast<uint64_t>(id) / 64; }
  static uint64_t bit(object_id id) { return uint64_t{1} << static_cast<uint64_t>(id) % 64; }
  bool has(object_id id) const { return of(id) == block && (objects & bit(id)) != 0; }
};

/// A hash table with linear probing. A cell is a block of objects, with a bit for each that is counted. What is counted
/// more than once has its further count in planes: bit n of plane p is bit p of that of object n. So blocks are counted
/// with a few operations on words. It takes 24 bytes per cell and two to eight cells per block, and gives memory
/// back. Used by one thread at a time.
class object_count_table {
 public:
  size_t blocks() const { return used_; }
  size_t cells() const { return cells_.size(); }

  /// Returns which of the objects are counted.
  uint64_t counted(const object_block& some) const {
    return cells_.empty() ? 0 : cells_[place_of(some.block)].objects & some.objects;
  }

  /// Counts each of the objects once more. Returns those that were not counted before.
  uint64_t add(const object_block& some);

  /// Counts each of the objects, which must be counted, once less. Returns those that are not counted any more.
  /// `shrinks`: gives memory back.
  uint64_t remove(const object_block& some, bool shrinks = true);

 private:
  using planes = std::vector<uint64_t>;
  struct cell {
    uint64_t block = 0;
    uint64_t objects = 0;         ///< 0: free
    std::unique_ptr<planes> more; ///< null: none is counted twice
  };
  static constexpr size_t cells_min = 16; // a power of two, like all sizes

  size_t home_of(uint64_t block) const {
    uint64_t mixed = block * 0x9e3779b97f4a7c15; // Fibonacci hashing
    return static_cast<size_t>(mixed >> 32) & (cells_.size() - 1);
  }
  /// Returns the block's cell, or the free cell in which it would be.
  size_t place_of(uint64_t block) const {
    size_t at = home_of(block);
    while (cells_[at].objects != 0 && cells_[at].block != block)
      at = (at + 1) & (cells_.size() - 1);
    return at;
  }
  void close_gap(size_t gap);
  void resize(size_t cells);

  std::vector<cell> cells_;
  size_t used_ = 0;
};

/// Many such tables, each for some runs of a thousand objects, so that growing one of them does not take
/// long. They do not all grow at the same time, because objects stored together are neighbors. The last few
/// of them keep their size, and one small table is kept when it is empty, so that a single lease that comes
/// and goes does not make them grow and shrink each time.
class object_counts {
 public:
  bool contains(object_id id) const { return counted({object_block::of(id), object_block::bit(id)}) != 0; }

  /// These are those of object_count_table.
  uint64_t counted(const object_block& some) const {
    const auto& table = tables_[place_of(some)];
    return table ? table->counted(some) : 0;
  }
  uint64_t add(const object_block& some);
  uint64_t remove(const object_block& some);

 private:
  static constexpr size_t run_blocks = 16;
  static constexpr size_t tables_max = 256;
  static constexpr size_t few_tables = 4;
  static constexpr size_t spare_cells_max = 256; ///< 6 KiB
  static size_t place_of(const object_block& some) { return some.block / run_blocks % tables_max; }

  std::array<std::unique_ptr<object_count_table>, tables_max> tables_;
  std::unique_ptr<object_count_table> spare_; ///< an empty table that is kept; null: none
  size_t in_use_ = 0;                         ///< number of tables
};

class lease_account;
using account_ptr = std::shared_ptr<lease_account>;

struct lease_bounds {
  uint32_t host_percent = 75; ///< percent of host memory that leases and their readers may hold together
  uint32_t connection_percent = 75; ///< percent, for one connection, of what the others leave free of that
  uint32_t disk_percent = 75;       ///< percent of a tier below that leases may hold together
};

/// Bytes are physical. An object counts once in the ledger and once in each account that leases it, however
/// many of its leases contain it: the prompt that all clients share costs its size once.
///
/// A connection may lease a share of what the others leave free of a limit. So it never takes everything, and
/// the next connection always finds the same share of what was left (the dynamic thresholds of Choudhury and
/// Hahne, 1998). With 75 %, one connection gets 3/4 of the limit, two that lease at the same time 3/7 each, n of
/// them 3/(3n+1).
///
/// Safe on any thread.
class lease_ledger : public std::enable_shared_from_this<lease_ledger> {
 public:
  /// `ends` ends holds of many objects, off the workers; null: the thread with the last reference does.
  explicit lease_ledger(const lease_bounds& bounds = {}, teardown_ptr ends = nullptr)
      : bounds_(bounds), ends_(std::move(ends)) {}
  lease_ledger(const lease_ledger&) = delete;
  lease_ledger& operator=(const lease_ledger&) = delete;

  /// Opens the account of a new connection.
  account_ptr open();

  /// Returns how many bytes leases and their readers may hold together of a host memory of this size.
  uint64_t bytes_max(uint64_t size) const { return size * bounds_.host_percent / 100; }
  /// Returns the bytes for a lease whose objects a tier below could hold: a quarter of host memory is left
  /// for loads from there.
  uint64_t bytes_max_beside_loads(uint64_t size) const {
    uint64_t most = bytes_max(size);
    return most - std::min(most, size / 4);
  }

  /// For checks: the bytes that leases hold, and how often that has changed, claims included.
  struct tally {
    uint64_t bytes = 0;
    uint64_t changes = 0;
  };
  tally now() const;

  /// Bytes that leases hold now, without claims.
  uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  /// Calls `grown` once, after the next charge by which leases hold more bytes, on the thread of whoever charges and without
  /// the lock. A charge that `bytes` does not include yet when this returns counts as the next. Each caller waits for its
  /// call before it asks again, so that there are only as many of them as callers.
  void notify_of_growth(std::function<void()> grown);

  /// Parallel to the places: true where an object is leased already, by anybody. Another lease on it takes no
  /// memory, so it is not limited.
  std::vector<bool> leased(std::span<const object_place> places);

 private:
  friend class lease_account;

  const lease_bounds bounds_;
  const teardown_ptr ends_;
  mutable std::mutex mutex_; ///< protects the accounts, too
  object_counts accounts_;   ///< in how many accounts each leased object is
  std::atomic<uint64_t> bytes_{0};
  uint64_t claimed_ = 0;
  uint64_t changes_ = 0;
  std::vector<std::function<void()>> on_growth_;
};
using ledger_ptr = std::shared_ptr<lease_ledger>;

/// The part of one connection. The connection and its leased objects keep it.
class lease_account : public std::enable_shared_from_this<lease_account> {
 public:
  explicit lease_account(ledger_ptr group) : group_(std::move(group)) {}

  /// Bytes that nobody else can lease while this exists.
  class claim {
   public:
    claim(account_ptr account, uint64_t bytes, bool complete)
        : of_(std::move(account)), bytes_(bytes), complete_(complete) {}
    claim(claim&&) = default;
    claim& operator=(claim&&) = delete;
    ~claim();
    uint64_t bytes() const { return bytes_; }
    bool complete() const { return complete_; } ///< false: it is less than the lease wanted
    void spend(uint64_t bytes);                 ///< charges this many bytes of it; call with the lock

   private:
    account_ptr of_;
    uint64_t bytes_;
    bool complete_;
  };

  /// Claims the bytes that a lease on these objects adds to what leases hold, or as many of them as the connection may
  /// add within `limit`. Keep the claim until the objects that are chosen within it are charged.
  claim claim_for(std::span<const object_place> places, uint64_t limit);
  /// Claims bytes for objects that are not in host memory yet.
  claim claim_for(uint64_t bytes, uint64_t limit);

  /// True if the connection may lease so many bytes more now.
  bool could_lease(uint64_t bytes, uint64_t limit) const;

  /// Charges the objects that `held` holds until the last copy of the result has ended, which keeps `held`. A hold of
  /// many objects ends later than the last reference, on another thread. The places of `held` must not change any more.
  hold_ptr charge(hold_ptr held);

 private:
  class charged_hold;

 public:
  /// Charges a hold in steps.
  class gradual_charge {
   public:
    gradual_charge(account_ptr account, hold_ptr held);
    /// Charges some more places, and takes the bytes that leases thereby hold more from the claim `from`.
    /// Returns false when all are charged.
    bool add_some(size_t places, claim* from = nullptr);
    hold_ptr result() const; ///< call after the last step
    uint64_t bytes() const;  ///< physical bytes of the places that are charged

   private:
    static std::shared_ptr<charged_hold> make(account_ptr account, hold_ptr held);
    std::shared_ptr<charged_hold> both_;
  };

  uint64_t bytes() const; ///< claims included

  /// Returns by how many bytes a lease that holds `bytes` of a tier below holds too much. `held` is what
  /// anybody holds of the tier, that lease included; `capacity` is that of the tier.
  ///
  /// Leases have the same shares of a tier below as of host memory, so that its other objects can be evicted
  /// for new ones. There objects are not counted one by one: the tier knows how much of it is held, each
  /// object once, and that is the most that this connection may hold of it. While leases hold less than one
  /// connection may, they are not limited.
  uint64_t too_much_below(tier_kind tier, uint64_t bytes, uint64_t held, uint64_t capacity) const;
  /// Charges what `held` holds of a tier below, until the last copy of the result ends.
  hold_ptr charge_below(tier_kind tier, hold_ptr held, uint64_t bytes);
  /// Counts an object as often as it is leased.
  uint64_t bytes_below(tier_kind tier) const { return below_[static_cast<size_t>(tier)].load(); }

 private:
  struct charged_below;
  uint64_t room(uint64_t limit) const; ///< returns how much more it may lease; call with the lock
  void add(std::span<const object_place> places, claim* from);
  void release(std::span<const object_place> places);

  ledger_ptr group_;
  object_counts leases_; ///< how many leases contain each object
  uint64_t bytes_ = 0;
  std::array<std::atomic<uint64_t>, tier_kinds> below_{}; ///< by tier_kind
};
using account_ptr = std::shared_ptr<lease_account>;

} // namespace terrace
