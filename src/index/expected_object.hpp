// Describes the object that the index expects at a place on disk: a reader compares it before a byte is used.
#pragma once

#include "base/object_key.hpp"
#include "index/object_header.hpp"
#include "index/space_registry.hpp"

#include <cstdint>
#include <span>

namespace terrace {

struct expected_object {
  object_identity identity;
  uint64_t payload_bytes = 0;
};

/// `generation` is that of the object's write to the volume; it contains the epoch.
expected_object expected_of(const opened_space& in, const volume_id& volume, const object_key& key,
                            uint64_t generation, uint64_t payload_bytes);

/// True if the header is that of the expected object; the caller compares the checksum of the payload.
bool is_expected(const object_header& found, const expected_object& expected);
/// True if the header block is intact, is that of the expected object, and names this checksum of the payload.
bool is_expected(std::span<const std::byte, object_header_bytes> header, const expected_object& expected,
                 uint64_t payload_checksum);

} // namespace terrace
