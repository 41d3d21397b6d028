// The index of one tier: its objects with location, state and holds.
#pragma once

#include "index/known_prefix.hpp"
#include "index/reader_gate.hpp"
#include "index/resident.hpp"
#include "index/segmented_array.hpp"
#include "index/space_registry.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

namespace terrace {

class table_recount;

/// The numbers that a table keeps about its objects. Bytes are physical.
struct table_totals {
  struct sum {
    uint64_t objects = 0;
    uint64_t bytes = 0;
    friend bool operator==(const sum&, const sum&) = default;
  };
  sum all; ///< objects in any state but free
  uint64_t readable = 0;
  sum held;
  uint64_t reserved_bytes = 0;
  std::unordered_map<uint32_t, sum> by_space; ///< the spaces that have objects in any state

  uint64_t objects_of(space_id space) const {
    auto found = by_space.find(static_cast<uint32_t>(space));
    return found == by_space.end() ? 0 : found->second.objects;
  }
};

/// A chained hash table over 32-bit slot numbers that grows by linear hashing (Litwin 1980; Larson 1988): an
/// insertion splits at most one bucket, so there is never a full rehash and operation time does not depend on
/// the table size; there are 4/3 as many buckets as objects. An object takes 64 bytes, and its bucket about
/// 6. Free slots are reused and their memory is kept.
///
/// Owned by one tier actor; other threads may only call `read`. All operations are O(1). Every change of
/// state must be allowed by `object_moves` (asserted).
class resident_table {
 public:
  static constexpr uint32_t objects_max = UINT32_MAX - 1;

  resident_table();

  /// The object's id in any state, or none.
  std::optional<object_id> find(const object_key& key) const;
  /// Finds an object by its policy name (a 128-bit digest of the key).
  std::optional<object_id> find(entry_key name) const;

  /// Looks up many keys with prefetching; `ids[i]` is 0 if key i has no readable object.
  void find_published(std::span<const object_key> keys, std::span<object_id> ids) const;
  /// Looks up the keys that equal `like` except for their chunks.
  void find_published(const object_key& like, std::span<const digest> chunks, std::span<object_id> ids) const;

  /// Safe on any thread: calls `look` with the table while no object is inserted, erased or changes state.
  /// Returns false without calling it while the table is being modified. `look` may call `find`,
  /// `find_published` and `get`, must not read holds, and should be short, because the owner waits for it.
  template <class Look>
  bool read(Look&& look) const {
    auto reading = gate_.try_read();
    if (reading)
      look(*this);
    return static_cast<bool>(reading);
  }

  /// Rejects readers on other threads for the lifetime of the result, as every modification does internally.
  /// The table must not be modified during that time.
  [[nodiscard]] reader_gate::writing shut() { return gate_.write(); }

  /// Inserts an object in state `reserved`. The key must not be in the table, and sizes must be within bounds
  /// (asserted).
  object_id insert(const new_resident& object);

  /// Announces that `objects` objects will be inserted into the empty table: it makes their buckets now, in
  /// order, instead of one by one in the order of the objects.
  void reserve(size_t objects);

  /// Null if the table does not contain the id (any more). Valid until the next insertion or erasure.
  const resident* get(object_id id) const;

  /// The parent given to `insert`, while the object is reserved; empty afterwards.
  entry_key parent_of(object_id id) const;

  void publish(object_id id);
  /// Changes `published` to `demoting`; `keep` reverts it.
  void demote(object_id id);
  void keep(object_id id);

  /// Erases the object; it must have no holds (asserted).
  void erase(object_id id);

  /// Removes an object whose bytes are still in use from the index: it can no longer be found. Its writer, or
  /// whoever drops its last hold, erases it.
  void remove(object_id id);

  /// The object must be readable (asserted).
  void hold(object_id id);
  /// Returns true if this was the last hold.
  bool release(object_id id);
  /// Remembers what the policy knows. Returns true if it knew otherwise.
  bool set_pinned(object_id id, bool pinned);

  size_t size() const { return totals_.all.objects; } ///< objects in any state
  const table_totals& totals() const { return totals_; }
  /// The number of objects that lookups find. Safe on any thread.
  size_t published() const { return readable_.load(std::memory_order_acquire); }
  /// Counts the objects that lookups can no longer find: evicted, cleared or moved away. Safe on any thread:
  /// a thread that reads the same counts as before a lookup would find what that lookup found.
  departure_counts departures() const {
    return {departed_.load(std::memory_order_acquire), held_departed_.load(std::memory_order_acquire)};
  }

  /// From now on the table tells `meter` what objects take, beginning with those that are in the table now.
  void measured_by(std::shared_ptr<space_meter> meter);

  /// From now on the table tells `recount` of each change of a slot; null: nobody. A recount calls it itself.
  void watched_by(table_recount* recount) { recount_ = recount; }
  /// True if the index leads to the object in the slot, or, if the object is removed, no longer does.
  bool indexed_rightly(uint32_t slot) const;

  /// Memory allocated by the table, used or not.
  size_t allocated_bytes() const { return slots_.allocated_bytes() + buckets_.allocated_bytes(); }

  /// Slots are numbered from 0; an object keeps its slot while it is in the table.
  static uint32_t slot_of(object_id id) { return static_cast<uint32_t>(static_cast<uint64_t>(id)); }
  uint32_t slots() const { return static_cast<uint32_t>(slots_.size()); }
  /// Returns the content of the slot now, which may have state `free`.
  const resident& at_slot(uint32_t slot) const { return slots_[slot]; }
  object_id id_at(uint32_t slot) const;

  template <class F>
  void for_each(F&& f) const {
    for (uint32_t slot = 0; slot < slots(); ++slot)
      if (slots_[slot].state() != object_state::free)
        f(slots_[slot]);
  }

 private:
  friend struct damaged_table; ///< lets tests damage the table
  static constexpr uint32_t none = UINT32_MAX;

  class watched_change;

  size_t bucket_of(uint64_t hash) const {
    size_t b = hash & (base_ - 1);
    return b < divided_ ? hash & (2 * base_ - 1) : b;
  }
  template <class Is>
  uint32_t find_slot(uint64_t hash, Is&& is) const;
  template <class Keys>
  void find_all(Keys keys, std::span<object_id> ids) const;
  template <class Keys>
  void request_buckets(Keys keys, size_t* buckets) const;
  template <class Keys>
  void find_scattered(Keys keys, std::span<object_id> ids, size_t* buckets, Keys next) const;
  template <class Keys>
  size_t find_beside(uint32_t slot, Keys keys, std::span<object_id> ids) const;
  resident& existing(object_id id);
  void move(resident& object, object_state next);
  void forget_parent(object_id id);
  void divide_bucket();
  void unlink(uint32_t slot);
  table_totals::sum& use_of(uint32_t space);

  reader_gate gate_; ///< closed while a slot or a bucket changes, except for holds
  segmented_array<resident> slots_;
  segmented_array<uint32_t> buckets_; ///< the first slot of each bucket: base_ + divided_ of them
  size_t base_;                       ///< a power of two
  size_t divided_ = 0;                ///< buckets below it have been split in this round
  uint32_t spare_ = none;             ///< the first free slot
  std::unordered_map<uint32_t, entry_key> parents_; ///< parents of the reserved objects, which are few
  table_totals totals_;
  uint32_t counted_space_ = 0; ///< the space of `counted_`, remembered because a request has one space
  table_totals::sum* counted_ = nullptr; ///< its element of `totals_.by_space`; null: none
  std::shared_ptr<space_meter> meter_;   ///< null: nobody is told
  std::atomic<size_t> readable_{0};      ///< `totals_.readable`; only the owner writes it and the next two
  std::atomic<uint64_t> departed_{0}, held_departed_{0};
  table_recount* recount_ = nullptr; ///< null: no recount is in progress
};

} // namespace terrace
