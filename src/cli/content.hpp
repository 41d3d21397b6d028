// The bytes that an object must hold, as a function of its digest.
#pragma once

#include "base/digest.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::cli {

/// Word i of the content is a mix of (XXH3 of the digest) + (i + 1) * step, little-endian; the last word is cut. A byte
/// therefore depends on the digest and on its place, so that bytes of another object, and bytes shifted within their
/// own, are both seen. Runs at several GB/s per thread, and needs no memory of what was stored.
void fill_content(std::span<std::byte> bytes, const digest& of);

/// How many of the bytes differ from what fill_content writes.
uint64_t count_wrong_bytes(std::span<const std::byte> bytes, const digest& of);

} // namespace terrace::cli
