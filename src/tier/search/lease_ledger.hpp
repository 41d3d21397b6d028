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
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace terrace {

// Counts how often each object occurs.

/// A hash table with linear probing, without an allocation per object, because a lease counts and uncounts
/// each of its objects. It takes 16 bytes per cell and two to eight cells per object, and gives memory back.
/// Used by one thread at a time.
class object_count_table {
 public:
  bool contains(object_id id) const { return !cells_.empty() && cells_[place_of(id)].count != 0; }
  size_t size() const { return used_; }
  size_t cells() const { return cells_.size(); }

  /// Returns how often the object is counted now. `id` is not 0.
  uint32_t add(object_id id) {
    if (2 * (used_ + 1) > cells_.size())
      resize(cells_.empty() ? cells_min : 2 * cells_.size());
    cell& at = cells_[place_of(id)];
    if (at.count == 0) {
      at.id = id;
      ++used_;
    }
    return ++at.count;
  }

  /// Returns how often the object is still counted; it must be counted. `shrinks`: gives memory back.
  uint32_t remove(object_id id, bool shrinks = true) {
    size_t at = place_of(id);
    assert(cells_[at].count != 0);
    if (uint32_t left = --cells_[at].count; left != 0)
      return left;
    --used_;
    close_gap(at);
    if (shrinks && cells_.size() > cells_min && 8 * used_ < cells_.size())
      resize(cells_.size() / 2);
    return 0;
  }

 private:
  struct cell {
    object_id id{};
    uint32_t count = 0; ///< 0: free
  };
  static constexpr size_t cells_min = 64; // a power of two, like all sizes

  size_t home_of(object_id id) const {
    uint64_t mixed = static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15; // Fibonacci hashing
    return static_cast<size_t>(mixed >> 32) & (cells_.size() - 1);
  }
  /// Returns the object's cell, or the free cell in which it would be.
  size_t place_of(object_id id) const {
    size_t at = home_of(id);
    while (cells_[at].count != 0 && cells_[at].id != id)
      at = (at + 1) & (cells_.size() - 1);
    return at;
  }
  /// Moves back the entries that the removed one had displaced.
  void close_gap(size_t gap) {
    size_t mask = cells_.size() - 1;
    for (size_t at = (gap + 1) & mask; cells_[at].count != 0; at = (at + 1) & mask)
      if (((at - home_of(cells_[at].id)) & mask) >= ((at - gap) & mask)) {
        cells_[gap] = cells_[at];
        cells_[at].count = 0;
        gap = at;
      }
  }
  void resize(size_t cells) {
    std::vector<cell> former(cells);
    former.swap(cells_);
    for (const cell& each : former)
      if (each.count != 0)
        cells_[place_of(each.id)] = each;
  }

  std::vector<cell> cells_;
  size_t used_ = 0;
};

/// Many such tables, each for some runs of a thousand objects, so that growing one of them does not take
/// long. They do not all grow at the same time, because objects stored together are neighbors. The last few
/// of them keep their size, and one small table is kept when it is empty, so that a single lease that comes
/// and goes does not make them grow and shrink each time.
class object_counts {
 public:
  bool contains(object_id id) const {
    const auto& table = tables_[place_of(id)];
    return table && table->contains(id);
  }
  size_t size() const { return used_; }

  /// Returns how often the object is counted now. `id` is not 0.
  uint32_t add(object_id id) {
    auto& table = tables_[place_of(id)];
    if (!table) {
      table = spare_ ? std::move(spare_) : std::make_unique<object_count_table>();
      ++in_use_;
    }
    uint32_t count = table->add(id);
    used_ += count == 1 ? 1 : 0;
    return count;
  }

  /// Returns how often the object is still counted; it must be counted.
  uint32_t remove(object_id id) {
    auto& table = tables_[place_of(id)];
    uint32_t count = table->remove(id, in_use_ > few_tables);
    used_ -= count == 0 ? 1 : 0;
    if (table->size() == 0) {
      --in_use_;
      if (table->cells() <= spare_cells_max)
        spare_ = std::move(table);
      table.reset();
    }
    return count;
  }

 private:
  static constexpr size_t run_objects = 1'024;
  static constexpr size_t tables_max = 256;
  static constexpr size_t few_tables = 4;
  static constexpr size_t spare_cells_max = 256; ///< enough for 128 objects: 4 KiB
  static size_t place_of(object_id id) { return static_cast<uint64_t>(id) / run_objects % tables_max; }

  std::array<std::unique_ptr<object_count_table>, tables_max> tables_;
  std::unique_ptr<object_count_table> spare_; ///< an empty table that is kept; null: none
  size_t in_use_ = 0;                         ///< number of tables
  size_t used_ = 0;
};

/// Counts in which units of an arena leased objects lie. A unit is as long as the largest object that was stored, so an arena has
/// room for as many of these as it has units without a leased object, wherever the leased ones lie: bytes that lie between them
/// in shorter pieces are of no use for a large object. In an arena whose objects have one size all pieces fit.
///
/// When a larger object comes, the units become longer. What was leased before is not counted in them until it ends.
/// An object adds to one or two counters. Used by one thread at a time.
class leased_units {
 public:
  /// Fewer units than this are too coarse to divide host memory by.
  static constexpr uint64_t units_min = 12;

  /// Objects of this size come to the arena. Returns false if such were known.
  bool expect(uint64_t physical_bytes) {
    if (smallest_ != 0 && physical_bytes >= smallest_ && physical_bytes <= largest_)
      return false;
    smallest_ = smallest_ == 0 ? physical_bytes : std::min(smallest_, physical_bytes);
    if (physical_bytes > largest_) {
      largest_ = physical_bytes;
      ++era_;
      counts_.clear();
      taken_ = 0;
    }
    return true;
  }
  /// Of the present length of units. What was added in another era is not removed.
  uint32_t era() const { return era_; }

  /// Returns in how many units leases may lie that may hold so many bytes; UINT64_MAX: it does not matter.
  uint64_t most(uint64_t limit_bytes) const {
    if (smallest_ == largest_ || limit_bytes / largest_ < units_min)
      return UINT64_MAX;
    return (limit_bytes + largest_ - 1) / largest_;
  }

  void add(const object_place& place) {
    each_unit(place, [this](uint64_t unit) {
      if (unit >= counts_.size())
        counts_.resize(std::max<size_t>(unit + 1, counts_.size() * 2));
      taken_ += counts_[unit]++ == 0 ? 1 : 0;
    });
  }
  void remove(const object_place& place) {
    each_unit(place, [this](uint64_t unit) {
      assert(counts_[unit] != 0);
      taken_ -= --counts_[unit] == 0 ? 1 : 0;
    });
  }

  /// Objects of which it is asked whether they may be leased, one after the other.
  struct survey {
    uint64_t limit_bytes = UINT64_MAX; ///< that leases may hold
    uint64_t bytes = 0;                ///< of the objects before the first that may not
    bool full = false;                 ///< there is such an object
    object_count_table units{};        ///< in which they lie, and no leased ones
  };
  void look_at(const object_place& place, survey& so_far) const {
    if (so_far.full)
      return;
    if (const uint64_t units_max = most(so_far.limit_bytes); units_max != UINT64_MAX) {
      each_unit(place, [&](uint64_t unit) {
        if (const object_id name{unit + 1};
            (unit >= counts_.size() || counts_[unit] == 0) && !so_far.units.contains(name))
          so_far.units.add(name);
      });
      so_far.full = taken_ + so_far.units.size() > units_max;
    }
    so_far.bytes += so_far.full ? 0 : place.physical_bytes;
  }

 private:
  template <class F>
  void each_unit(const object_place& place, F&& f) const {
    const uint64_t first = place.offset / largest_,
                   last = (place.offset + place.physical_bytes - 1) / largest_;
    for (uint64_t unit = first; unit <= last; ++unit)
      f(unit);
  }

  uint64_t smallest_ = 0, largest_ = 0; ///< physical bytes of an object; 0: none was stored
  uint32_t era_ = 0;
  std::vector<uint32_t> counts_; ///< by unit: how often its objects are charged
  uint64_t taken_ = 0;           ///< units in which leased objects lie
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

  /// Parallel to the places: true where an object is leased already, by anybody. Another lease on it takes no
  /// memory, so it is not limited. `so_far` goes on over those that are not.
  std::vector<bool> leased(std::span<const object_place> places, leased_units::survey& so_far);

  /// Objects of this size are stored in host memory. Cheap if such were stored before.
  void stores(uint64_t physical_bytes) {
    if (physical_bytes < smallest_.load(std::memory_order_relaxed) ||
        physical_bytes > largest_.load(std::memory_order_relaxed))
      learn(physical_bytes);
  }

 private:
  friend class lease_account;
  void learn(uint64_t physical_bytes);

  const lease_bounds bounds_;
  const teardown_ptr ends_;
  mutable std::mutex mutex_; ///< protects the accounts, too
  object_counts accounts_;   ///< in how many accounts each leased object is
  std::atomic<uint64_t> bytes_{0};
  leased_units units_;
  std::atomic<uint64_t> smallest_{UINT64_MAX}, largest_{0}; ///< as in `units_`
  uint64_t claimed_ = 0;
  uint64_t changes_ = 0;
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
    friend class lease_account;

    account_ptr of_;
    uint64_t bytes_;
    bool complete_;
  };

  /// Claims the bytes that a lease on these objects adds to what leases hold, or as many of them as the connection may
  /// add within `limit`. Keep the claim until the objects that are chosen within it are charged.
  claim claim_for(std::span<const object_place> places, uint64_t limit);
  /// Claims bytes for objects that are not in host memory yet.
  claim claim_for(uint64_t bytes, uint64_t limit);

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
  uint32_t era() const;
  uint64_t room(uint64_t limit) const;     ///< returns how much more it may lease; call with the lock
  uint64_t add(const object_place& place); ///< call with the lock; returns by how many bytes leases hold more
  void add(std::span<const object_place> places, uint32_t era, claim* from);
  void release(std::span<const object_place> places, uint32_t era);

  ledger_ptr group_;
  object_counts leases_; ///< how many leases contain each object
  uint64_t bytes_ = 0;
  std::array<std::atomic<uint64_t>, tier_kinds> below_{}; ///< by tier_kind
};
using account_ptr = std::shared_ptr<lease_account>;

} // namespace terrace
