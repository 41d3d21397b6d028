// The bytes that an object must contain, as a function of its digest.
#pragma once

#include "base/digest.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::cli {

/// Word i of the content is a mix of (XXH3 of the digest) + (i + 1) * step, little-endian; the last word is
/// truncated. A byte therefore depends on the digest and on its position, so that both bytes of another
/// object and shifted bytes are detected. Several GB/s per thread, without storing what was written.
void fill_content(std::span<std::byte> bytes, const digest& of);

/// Counts the bytes that differ from the output of fill_content.
uint64_t count_wrong_bytes(std::span<const std::byte> bytes, const digest& of);

} // namespace terrace::cli
