// Canonical CBOR (RFC 8949, section 4.2.1) of the types used in digests, appended to a buffer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace terrace::cbor {

using buffer = std::vector<uint8_t>;

void put_array(buffer& out, uint64_t count); ///< `count` items follow
void put_integer(buffer& out, int64_t number);
void put_bytes(buffer& out, std::span<const uint8_t> bytes);
void put_text(buffer& out, std::string_view text);
void put_null(buffer& out);

/// Appends an array of all numbers; the hot loop of `sha256_cbor`.
void put_numbers(buffer& out, std::span<const uint32_t> numbers);

} // namespace terrace::cbor
