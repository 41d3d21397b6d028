// The states of an object in one tier and the transitions between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace terrace {

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

} // namespace terrace
