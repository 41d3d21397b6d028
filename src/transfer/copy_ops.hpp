// The operations of a copier on bytes: plain, blocking functions.
#pragma once

#include "transfer/copy_messages.hpp"

namespace terrace {

/// Copies the pieces in order. Mapped memory is copied; unmapped memory is accessed through its descriptor,
/// where truncation is the error `gone` and not a fault. Ends early with the context. Checksums are those of
/// the arena's bytes, whatever the client does to its own, and are computed while these are in cache, which
/// costs half of reading them again.
copy_answer move_bytes(const copy_request& request, uint64_t piece_bytes);

/// Writes the header block in front of each payload and zeroes the padding after it. Reads only payloads
/// whose checksum is not known; the others take a microsecond each.
void seal_objects(const seal_request& request);

/// True if header and checksum match the expected object.
std::vector<bool> check_objects(const check_request& request);

} // namespace terrace
