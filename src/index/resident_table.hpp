// The residency index of one tier: which objects exist, where they lie, what state they are in and who holds
// them.
#pragma once

#include "index/object_id.hpp"
#include "index/reader_gate.hpp"
#include "index/resident.hpp"
#include "index/segmented_array.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace terrace {

/// A chained hash table over 32-bit slot numbers that grows by linear hashing (Litwin 1980; Larson 1988): an insertion
/// divides at most one bucket, so nothing is ever rehashed at large, no operation takes longer than some hundred
/// nanoseconds because the table is big, and buckets stay at 4/3 of the objects. 64 bytes an object and some 6 for its
/// bucket; slots that become free are used again, and their memory is kept.
///
/// It belongs to one tier actor; other threads may only `read` it. All operations are O(1). Every change of state is one
/// that `object_moves` allows (asserted).
class resident_table {
 public:
  static constexpr uint32_t objects_max = UINT32_MAX - 1;

  resident_table();

  /// The object's id whatever its state, or none.
  std::optional<object_id> find(const object_key& key) const;
  /// The same by policy name (a 128-bit digest of the key).
  std::optional<object_id> find(entry_key name) const;

  /// Looks many keys up with their cache lines requested ahead; `ids[i]` is 0 where nothing readable is.
  void find_published(std::span<const object_key> keys, std::span<object_id> ids) const;

  /// Any thread: runs `look` (a function of the table) while nothing comes, goes or changes its state; false, and nothing is
  /// run, while the table is being changed. `look` may use `find`, `find_published` and `get`, but not the holds of what it
  /// finds, and should be short: the owner waits for it.
  template <class Look>
  bool read(Look&& look) const {
    auto reading = gate_.try_read();
    if (reading)
      look(*this);
    return static_cast<bool>(reading);
  }

  /// Turns readers of other threads away for as long as the result lives, as every change does for itself. Nothing may be
  /// changed meanwhile.
  [[nodiscard]] reader_gate::writing shut() { return gate_.write(); }

  /// A new object in state `reserved`. The key must not be in the table, and sizes within bounds (asserted).
  object_id insert(const new_resident& object);

  /// Null when the id is not (or no longer) in the table. Valid until the next insertion or erasure.
  const resident* get(object_id id) const;

  /// What `insert` was told, while the object is reserved; empty afterwards.
  entry_key parent_of(object_id id) const;

  void publish(object_id id);
  /// published -> demoting, and back if it stays after all.
  void demote(object_id id);
  void keep(object_id id);

  /// Removes the object; its holds must be 0 (asserted).
  void erase(object_id id);

  /// Takes an object out of the index whose bytes are still in use: nobody finds it again. Whoever drops the last hold,
  /// or writes it, erases it.
  void remove(object_id id);

  /// True when this was the first hold. The object must be readable (asserted).
  bool hold(object_id id);
  /// True when this was the last hold.
  bool release(object_id id);

  size_t size() const { return live_; }
  size_t published() const {
    return readable_.load(std::memory_order_acquire);
  } ///< that lookups find; any thread
  size_t held() const { return held_; }
  uint64_t held_bytes() const { return held_bytes_; } ///< physical, as `reserved_bytes`
  uint64_t reserved_bytes() const { return reserved_bytes_; }

  /// Memory of the table: what it has taken, used or not.
  size_t allocated_bytes() const { return slots_.allocated_bytes() + buckets_.allocated_bytes(); }

  /// Slots are numbered from 0; an object keeps its own while it is in the table.
  static uint32_t slot_of(object_id id) { return static_cast<uint32_t>(static_cast<uint64_t>(id)); }
  uint32_t slots() const { return static_cast<uint32_t>(slots_.size()); }
  /// Whatever is there now, in state `free` as well.
  const resident& at_slot(uint32_t slot) const { return slots_[slot]; }
  object_id id_at(uint32_t slot) const;

  template <class F>
  void for_each(F&& f) const {
    for (uint32_t slot = 0; slot < slots(); ++slot)
      if (slots_[slot].state() != object_state::free)
        f(slots_[slot]);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  size_t bucket_of(uint64_t hash) const {
    size_t b = hash & (base_ - 1);
    return b < divided_ ? hash & (2 * base_ - 1) : b;
  }
  template <class Is>
  uint32_t find_slot(uint64_t hash, Is&& is) const;
  resident& existing(object_id id);
  void move(resident& object, object_state next);
  void forget_parent(object_id id);
  void divide_bucket();
  void unlink(uint32_t slot);

  reader_gate gate_; ///< closed while a slot or a bucket changes, but for holds
  segmented_array<resident> slots_;
  segmented_array<uint32_t> buckets_;               ///< the first slot of each: base_ + divided_ of them
  size_t base_;                                     ///< a power of two
  size_t divided_ = 0;                              ///< buckets below it have been divided in two this round
  uint32_t spare_ = none;                           ///< the first free slot
  std::unordered_map<uint32_t, entry_key> parents_; ///< of the few that are reserved
  size_t live_ = 0;
  std::atomic<size_t> readable_{0}; ///< written by the owner only
  size_t held_ = 0;
  uint64_t held_bytes_ = 0;
  uint64_t reserved_bytes_ = 0;
};

} // namespace terrace
