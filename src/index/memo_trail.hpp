// The position of a prompt in a memo of digests.
#pragma once

#include <cstdint>

namespace terrace {

/// A prompt that is asked for again finds the same entries in the same order. So an entry of a memo
/// (digest_memo.hpp) knows which entry was found after it the last time, and that one is compared first:
/// while the prompt follows the trail, nothing is hashed.
struct memo_trail {
  uint64_t last = 0; ///< the fast hash of the entry that was found last; 0: none
  uint64_t next = 0; ///< the fast hash of the entry that followed it the last time; 0: none
};

} // namespace terrace
