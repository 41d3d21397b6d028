// One object of a tier, in one cache line.
#pragma once

#include "base/object_key.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace terrace {

// Identifies an object in its tier.

/// Identifies one stay of an object in one tier; never reused while the daemon runs (slot and generation). 0: none.
enum class object_id : uint64_t {};

// The states of an object in one tier and the transitions between them.

enum class object_state : uint8_t {
  free,      ///< no object: the slot and its bytes are free
  reserved,  ///< being written by one owner; invisible to lookups
  published, ///< complete; can be found, held and evicted
  demoting,  ///< moving to a lower tier: can still be found and held, but not chosen as a victim
  removed,   ///< out of the index; its bytes stay allocated until its last hold or its writer ends
};

constexpr size_t object_states = 5;

constexpr std::string_view to_string(object_state state) {
  constexpr std::string_view names[] = {"free", "reserved", "published", "demoting", "removed"};
  return names[static_cast<size_t>(state)];
}

/// A row is the state before, a column the state after; both in the order of the enumeration.
constexpr std::array<std::array<bool, object_states>, object_states> object_moves = {{
    // free reserved published demoting removed
    {false, true, false, false, false}, // free: reserved
    {true, false, true, false, true},   // reserved: abandoned, completed, or cleared while being written
    {true, false, false, true, true},   // published: evicted, demoted, or cleared while held
    {true, false, true, false, true},   // demoting: moved down, kept after all, or cleared while held
    {true, false, false, false, false}, // removed: its last user ended
}};

constexpr bool may_move(object_state from, object_state to) {
  return object_moves[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

/// True if lookups find it.
constexpr bool readable(object_state state) {
  return state == object_state::published || state == object_state::demoting;
}

/// The description of an object to insert. Offset and physical size are multiples of 4,096.
struct new_resident {
  object_key key;              ///< pool below 256
  entry_key parent;            ///< policy name of the previous object in its chain, or empty
  uint64_t offset = 0;         ///< start of the extent in the tier's arena; below 4 PiB
  uint64_t physical_bytes = 0; ///< size of the extent; below 32 GiB
  uint64_t payload_bytes = 0;  ///< below 4 GiB
  bool trailing = false;       ///< belongs to a pool in which only the last objects of a prefix are needed
};

/// An object as stored in `resident_table`: 64 bytes, so that a lookup touches one cache line. Only the table
/// modifies it. The policy name is computed, not stored; the parent's name is kept by the table while the
/// object is reserved, and by the policy afterwards.
class alignas(64) resident {
 public:
  static constexpr uint64_t page_bytes = 4096;

  object_key key() const { return {static_cast<space_id>(space_), pool_, rank_, {chunk_}}; }
  entry_key name() const { return to_entry_key(key()); }
  object_state state() const { return state_; }
  uint32_t holds() const {
    return holds_;
  } ///< number of leases and transfers that read it; must be 0 for eviction
  bool pinned() const { return pinned_ != 0; } ///< the policy knows that it has to stay
  uint64_t offset() const { return offset_pages_ * page_bytes; }
  uint64_t physical_bytes() const { return physical_pages_ * page_bytes; }
  uint64_t payload_bytes() const { return payload_bytes_; }
  bool trailing() const { return trailing_ != 0; }

  /// Cheaper than comparing `key()`.
  bool is(const object_key& other) const { return is(other, other.chunk); }
  /// True if its key is `like` with this chunk instead.
  bool is(const object_key& like, const digest& chunk) const {
    return digest::same_bytes(chunk_, chunk.bytes) && space_ == static_cast<uint32_t>(like.space) &&
           pool_ == like.pool && rank_ == like.rank;
  }

 private:
  friend class resident_table;

  std::array<uint8_t, digest::max_size> chunk_;
  uint32_t space_;
  uint32_t generation_; ///< incremented when the slot is reused
  uint32_t holds_ : 31;
  uint32_t pinned_ : 1;
  uint32_t next_; ///< next slot in its bucket or in the free list
  uint32_t payload_bytes_;
  uint16_t rank_;
  uint8_t pool_;
  object_state state_;
  uint64_t offset_pages_ : 40;
  uint64_t physical_pages_ : 23;
  uint64_t trailing_ : 1;
};
static_assert(sizeof(resident) == 64);

} // namespace terrace
