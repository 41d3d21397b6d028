// What a copier does to bytes: plain, blocking functions.
#pragma once

#include "actors/disk/disk_messages.hpp"
#include "actors/messages.hpp"

namespace terrace::actors {

/// Moves the pieces in order. Mapped memory is copied; unmapped memory goes through its descriptor, where a file that
/// shrank meanwhile is the error `gone` and no fault. Ends early with the context. Checksums are those of the arena's bytes,
/// whatever the client does to its own, and are taken while these are in cache: that costs half of reading them again.
copy_answer move_bytes(const copy_request& request, uint64_t piece_bytes);

/// Writes the header block in front of each payload and zeroes the padding behind it. Reads the payloads only whose checksum
/// is not known; the others take a microsecond each.
void seal_objects(const seal_request& request);

/// Whether header and checksum are those of the expected object.
std::vector<bool> check_objects(const check_request& request);

} // namespace terrace::actors
