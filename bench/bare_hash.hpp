// The limit of hashing a prompt: a chain of hashes over its bytes, block by block, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::bench {

/// Both give the last digest's first 8 bytes, so that nothing is optimised away.

/// One fetched algorithm and one context for all blocks.
uint64_t bare_sha256_chain(std::span<const uint8_t> bytes, size_t block_bytes);

uint64_t bare_xxh3_chain(std::span<const uint8_t> bytes, size_t block_bytes);

} // namespace terrace::bench
