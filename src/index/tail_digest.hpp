// The digest of a partial chunk: the tokens after the last whole chunk of a prompt.
#pragma once

#include "index/extra_keys.hpp"
#include "index/token_hasher.hpp"

#include <optional>
#include <span>

namespace terrace {

/// Returns SHA-256(tag "terrace tail v1", digest), truncated to the width of the hasher. `digest` is that of the tokens
/// as one block onto `parent`, with the extra keys of their place in the prompt; if the prompt has no whole chunk, it
/// is the key of that block (first_block.hpp). So equal tails of equal prompts have equal digests, and no tail has the
/// digest of a chunk. `parent` is the digest of the chunk before, or a client's seed; none: the hasher's root. `tokens`
/// has at least one token and fewer than a chunk; they begin at `first_token` of the prompt.
digest tail_digest(token_hasher& hasher, const std::optional<digest>& parent, uint64_t first_token,
                   std::span<const uint32_t> tokens, const extra_keys& extra);

} // namespace terrace
