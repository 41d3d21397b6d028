// The part of a session's last saved turn that is not in whole chunks.
#pragma once

#include "base/digest.hpp"
#include "index/space_registry.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Immutable, and shared by the forks of a session. A fork that appends gets a new saved turn with its next
/// save, and this one stays as it is. Safe on any thread.
struct saved_turn {
  space_ptr in;
  uint64_t chunks = 0;      ///< number of whole chunks
  uint32_t tail_tokens = 0; ///< tokens after the whole chunks; 0: the turn ended at a chunk boundary
  /// digest of the tail, see tail_digest.hpp; without a tail, of the last whole chunk
  digest key;
  std::vector<uint64_t> cursors; ///< the client's cursors at the end of this turn, one per pool; may be empty

  uint64_t tokens() const { return chunks * in->spec.chunk_tokens + tail_tokens; }
};
using saved_turn_ptr = std::shared_ptr<const saved_turn>;

} // namespace terrace
