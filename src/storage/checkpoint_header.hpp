// The first 4 KiB of a checkpoint area (docs/disk-format.md). They are written last: without them the area is empty.
#pragma once

#include "base/error.hpp"
#include "index/object_header.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

constexpr uint64_t checkpoint_header_bytes = 4096;
constexpr uint32_t checkpoint_header_version = 1;

struct checkpoint_header {
  volume_id volume;
  uint64_t number = 0;           ///< number of the checkpoint; the area with the higher number is current
  uint64_t journal_sequence = 0; ///< the first journal block to read after it
  uint64_t image_blocks = 0;     ///< number of blocks after the header
  uint64_t records = 0;          ///< number of records in them, so that the reader can reserve memory

  friend bool operator==(const checkpoint_header&, const checkpoint_header&) = default;
};

void encode(const checkpoint_header& header, std::span<std::byte, checkpoint_header_bytes> out);

/// Errors: `not_found` if no header was written, `unsupported` for another version, `internal` for a damaged
/// one, `gone` for a header of another volume.
result<checkpoint_header> decode_checkpoint_header(const volume_id& volume,
                                                   std::span<const std::byte, checkpoint_header_bytes> bytes);

} // namespace terrace
