// The limit of hashing a prompt: only a chain of hashes over its bytes, block by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::bench {

/// Both functions return the first 8 bytes of the last digest, so that nothing is optimised away.

/// Uses one fetched algorithm and one context for all blocks.
uint64_t bare_sha256_chain(std::span<const uint8_t> bytes, size_t block_bytes);

uint64_t bare_xxh3_chain(std::span<const uint8_t> bytes, size_t block_bytes);

} // namespace terrace::bench
