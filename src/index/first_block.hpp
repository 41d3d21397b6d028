// The key of an object whose digest is that of a prompt's first block.
#pragma once

#include "index/extra_keys.hpp"
#include "index/space_spec.hpp"
#include "index/token_hasher.hpp"

#include <optional>
#include <span>

namespace terrace {

// The digest of a partial chunk: the tokens after the last whole chunk of a prompt.

/// Returns SHA-256(tag "terrace tail v1", digest), truncated to the width of the hasher. `digest` is that of the tokens
/// as one block onto `parent`, with the extra keys of their place in the prompt; if the prompt has no whole chunk, it
/// is the key of that block (first_block.hpp). So equal tails of equal prompts have equal digests, and no tail has the
/// digest of a chunk. `parent` is the digest of the chunk before, or a client's seed; none: the hasher's root. `tokens`
/// has at least one token and fewer than a chunk; they begin at `first_token` of the prompt.
digest tail_digest(token_hasher& hasher, const std::optional<digest>& parent, uint64_t first_token,
                   std::span<const uint32_t> tokens, const extra_keys& extra);

/// In vLLM's form the digest of a first block does not say whether a single text is a LoRA name or a salt; later digests of
/// the chain do, because a name is in every block and a salt only in the first one. Where the first digest names an object,
/// its key is SHA-256(tag "terrace first block v1", the LoRA name and the salt, digest), truncated to `width` bytes. The digest
/// itself is the key if there are neither, or if the form has a place for each kind. `block` is the digest.
digest first_block_key(const digest& block, const extra_keys& extra, extra_key_form form, size_t width);

/// True if the first chunk consists of one block, so that both have the same digest.
inline bool first_chunk_is_a_block(const space_spec& spec) {
  return spec.chunk_tokens == spec.hash_block_tokens;
}

} // namespace terrace
