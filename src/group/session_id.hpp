// What names a session (`session_id`), and what its last turn left behind for the next one (`saved_turn`).
#pragma once

#include "base/digest.hpp"
#include "index/space_registry.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace terrace {

// The part of a session's last saved turn that is not in whole chunks.

/// Immutable, and shared by the forks of a session. A fork that appends gets a new saved turn with its next
/// save, and this one stays as it is. Safe on any thread.
struct saved_turn {
  space_ptr space;
  uint64_t chunks = 0;      ///< number of whole chunks
  uint32_t tail_tokens = 0; ///< tokens after the whole chunks; 0: the turn ended at a chunk boundary
  /// digest of the tail, see index/prefix_hasher.hpp; without a tail, of the last whole chunk
  digest key;
  std::vector<uint64_t> cursors; ///< the client's cursors at the end of this turn, one per pool; may be empty

  uint64_t tokens() const { return chunks * space->spec.chunk_tokens + tail_tokens; }
};
using saved_turn_ptr = std::shared_ptr<const saved_turn>;

/// 128 unguessable bits. Anyone who has the id may use the session within its trust group.
struct session_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const session_id&, const session_id&) = default;
  bool empty() const { return *this == session_id{}; }
};

} // namespace terrace

template <>
struct std::hash<terrace::session_id> {
  size_t operator()(const terrace::session_id& id) const noexcept {
    size_t h;
    std::memcpy(&h, id.bytes.data(), sizeof h); // the bits are random: any eight bytes are a hash
    return h;
  }
};
