// The residency index of one tier: which objects exist, where they lie, what state they are in and who holds
// them.
#pragma once

#include "base/object_key.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// Names one stay of an object in one tier; never reused while the daemon lives (slot and generation). 0:
/// none.
enum class object_id : uint64_t {};

enum class object_state : uint8_t {
  reserved,  ///< being written by one owner; invisible to lookups
  published, ///< complete; may be found, held and evicted
  removed,   ///< out of the index, alive until its last hold ends
};

struct resident {
  object_key key;
  object_state state = object_state::reserved;
  uint32_t generation = 0; ///< even: the slot is free
  uint32_t holds = 0;      ///< leases and transfers that read it; evictable only at 0
  entry_key name;          ///< to_entry_key(key), kept: it is the hash
  entry_key parent;
  uint64_t offset = 0;         ///< of the extent in the tier's arena
  uint64_t physical_bytes = 0; ///< of the extent
  uint64_t payload_bytes = 0;
};

/// Open addressing over 32-bit slot numbers, linear probing, backward-shift deletion. Not thread-safe: it
/// belongs to one tier actor. All operations are O(1) but for growth.
class resident_table {
 public:
  resident_table();

  /// The object's id whatever its state, or none.
  std::optional<object_id> find(const object_key& key) const;
  /// The same by policy name (a 128-bit digest of the key).
  std::optional<object_id> find(entry_key name) const;

  /// Looks many keys up with their cache lines requested ahead; `ids[i]` is 0 where nothing is published.
  void find_published(std::span<const object_key> keys, std::span<object_id> ids) const;

  /// A new object in state `reserved`. The key must not be in the table (asserted).
  object_id insert(const resident& object);

  /// Null when the id is not (or no longer) in the table.
  resident* get(object_id id);
  const resident* get(object_id id) const;

  /// Removes the object; its holds must be 0 (asserted).
  void erase(object_id id);

  /// Takes a held object out of the index: nobody finds it again, and whoever drops the last hold erases it.
  void remove(object_id id);

  size_t size() const { return live_; }
  size_t published() const { return published_; }
  size_t held() const { return held_; }

  /// State and hold changes go through the table so that its counters stay exact.
  void publish(object_id id);
  /// True when this was the first hold.
  bool hold(object_id id);
  /// True when this was the last hold.
  bool release(object_id id);

  template <class F>
  void for_each(F&& f) const {
    for (const resident& object : slots_)
      if ((object.generation & 1) != 0)
        f(object);
  }

 private:
  static constexpr uint32_t empty = UINT32_MAX;

  size_t bucket_of(uint64_t hash) const { return hash & (buckets_.size() - 1); }
  size_t find_bucket(entry_key name, const object_key* key) const;
  object_id id_of(uint32_t slot) const;
  void grow();
  void unlink(const resident& object);

  std::vector<uint32_t> buckets_; // slot numbers; a power of two, at most three quarters full
  std::vector<resident> slots_;
  std::vector<uint32_t> free_slots_;
  size_t live_ = 0;
  size_t published_ = 0;
  size_t held_ = 0;
};

} // namespace terrace
