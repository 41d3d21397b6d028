// What a session has of its last saved turn besides whole chunks.
#pragma once

#include "base/digest.hpp"
#include "index/space_registry.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Does not change, and is shared by the forks of a session: one that appends has another one after its next save, and this
/// one stays as it is. Safe on any thread.
struct saved_turn {
  space_ptr in;
  uint64_t chunks = 0;      ///< whole ones
  uint32_t tail_tokens = 0; ///< after them; 0: the turn ended with a chunk
  digest key;               ///< of the tail, see tail_digest.hpp; without a tail, of the last whole chunk
  std::vector<uint64_t> cursors; ///< of the client, one for each pool, for the end of this turn; empty: none

  uint64_t tokens() const { return chunks * in->spec.chunk_tokens + tail_tokens; }
};
using saved_turn_ptr = std::shared_ptr<const saved_turn>;

} // namespace terrace
